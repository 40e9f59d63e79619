// Every answer carries the headers a browser needs to show it (GRASP-01 C1 to C4), also where node's HTTP server would
// answer by itself.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { exchange } from "../harness/raw-http.js";
import { startInProcess, type TestServer } from "../harness/server.js";

describe("what no route ever sees is answered with CORS headers", () => {
  let server: TestServer;
  before(async () => {
    server = await startInProcess();
  });
  after(() => server.stop());

  const cases: [string, string, number][] = [
    ["an unknown expectation", "GET / HTTP/1.1\r\nHost: x\r\nExpect: 200-ok\r\nConnection: close\r\n\r\n", 417],
    ["a request without Host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400],
    ["a preflight without Host", "OPTIONS /x HTTP/1.1\r\nConnection: close\r\n\r\n", 204],
    ["HTTP/1.0, which has no Host", "GET /healthz HTTP/1.0\r\n\r\n", 200],
    ["what is no HTTP", "HELLO\r\n\r\n", 400],
    ["headers without end", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(40_000)}\r\n\r\n`, 431],
    ["a handshake without key", "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 400],
  ];
  for (const [what, bytes, status] of cases) {
    it(`${what}: ${status}`, async () => {
      const answer = await exchange(server.origin, bytes);
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      for (const header of [
        "Access-Control-Allow-Origin: *",
        "Access-Control-Allow-Methods: GET, POST, PUT, OPTIONS",
        "Access-Control-Allow-Headers: Authorization, Content-Type, Git-Protocol, Accept, Content-Encoding, X-Requested-With",
      ]) {
        assert.equal(answer.split(`\r\n${header}\r\n`).length, 2, `${header} once in ${answer}`);
      }
    });
  }
});
