// Node's own request time-out does not cut a long push (git-http.md, Serving): the time a whole request may take is what
// the server is told, also after a reload.

import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { createHttpServer, trustedProxies } from "../../src/http/server.js";

/** A body that was promised and does not come; resolves with what the server says when it has had enough. */
function dawdle(port: number): { readonly ended: Promise<string>; readonly isOpen: () => boolean; end(): void } {
  const socket = connect(port, "127.0.0.1");
  let text = "";
  let isOpen = true;
  socket.write("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  const ended = new Promise<string>((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    socket.on("error", () => undefined);
    socket.on("close", () => {
      isOpen = false;
      resolve(text);
    });
  });
  return { ended, isOpen: () => isOpen, end: () => socket.destroy() };
}

test("a request ends when its time is over, and not before", async (t) => {
  const start = async (requestTimeoutMs: number) => {
    const server = createHttpServer({
      routes: [{ matches: () => true, handle: (request) => void request.message.resume() }],
      basePath: "",
      trustedProxies: () => trustedProxies([]).list,
      clock: systemClock,
      headersTimeoutMs: 200,
      requestTimeoutMs: () => requestTimeoutMs,
      onFault: (error) => assert.fail(String(error)),
    });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close(0));
    return port;
  };
  const long = dawdle(await start(3_600_000));
  const short = dawdle(await start(300));
  t.after(() => long.end());
  assert.match(await short.ended, /^HTTP\/1\.1 408 /);
  assert.ok(long.isOpen(), "the one that has an hour is still there");
});
