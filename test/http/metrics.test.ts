// Who may read /metrics of a started server (spec/configuration.md): it is public only if said so, and on an address of
// its own it is not at the public one.

import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { freePort } from "../harness/free-port.js";
import { startInProcess, type TestServer } from "../harness/server.js";

const stranger = { headers: { "X-Forwarded-For": "192.0.2.7" } };

async function started(t: TestContext, settings: Record<string, string>): Promise<TestServer> {
  const server = await startInProcess({ settings });
  t.after(() => server.end());
  return server;
}

describe("/metrics of a started server", { timeout: 900_000 }, () => {
  test("threat 31: is for this machine alone unless it is public", async (t) => {
    const server = await started(t, {});
    const local = await fetch(`${server.origin}/metrics`);
    assert.equal(local.status, 200);
    assert.match(await local.text(), /^ngit_build_info\{version="0\.0\.0",commit="test"\} 1$/m);
    assert.equal((await fetch(`${server.origin}/metrics`, stranger)).status, 401);
  });

  test("is for everybody with NGIT_METRICS_PUBLIC", async (t) => {
    const server = await started(t, { NGIT_METRICS_PUBLIC: "true" });
    const answer = await fetch(`${server.origin}/metrics`, stranger);
    assert.equal(answer.status, 200);
    assert.match(await answer.text(), /^ngit_websocket_connections_active 0$/m);
  });

  test("on an address of its own it answers whoever reaches that, and is gone from the public one", async (t) => {
    const port = await freePort();
    const server = await started(t, { NGIT_METRICS_BIND_ADDRESS: `127.0.0.1:${port}` });
    const own = await fetch(`http://127.0.0.1:${port}/metrics`, stranger);
    assert.equal(own.status, 200);
    assert.match(await own.text(), /^ngit_uptime_seconds /m);
    assert.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 404, "nothing else is there");
    assert.equal((await fetch(`${server.origin}/metrics`)).status, 404);
    await server.stop();
    await assert.rejects(fetch(`http://127.0.0.1:${port}/metrics`));
  });

  test("is nowhere when it is switched off", async (t) => {
    const server = await started(t, { NGIT_METRICS_ENABLED: "false" });
    assert.equal((await fetch(`${server.origin}/metrics`)).status, 404);
  });
});
