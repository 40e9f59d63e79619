// git itself must dial the checked address: the pin we hand it is tried with the real program.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { curlResolveEntry, guardUrl } from "../../src/net/guard.js";

for (const [what, addresses] of [
  ["one address", ["127.0.0.1"]],
  ["a dead IPv6 address before it", ["::1", "127.0.0.1"]],
] as const) {
  test(`git dials the pinned address of a name that DNS does not know: ${what}`, async () => {
    const hosts: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      hosts.push(request.headers.host);
      response.writeHead(404).end();
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const guarded = await guardUrl(`http://pinned.invalid:${port}/x.git`, {
      resolve: async () => ({ ok: true, addresses }),
      reach: "loopback",
    });
    assert.ok(guarded.ok);
    const pin = curlResolveEntry(guarded.url);
    const settings = [`http.curloptResolve=${pin}`, "http.followRedirects=false", "http.proxy="];
    const argv = [...settings.flatMap((setting) => ["-c", setting]), "ls-remote", "--end-of-options", guarded.url.href];
    const env = {
      PATH: process.env.PATH ?? "",
      GIT_TERMINAL_PROMPT: "0",
      GIT_CONFIG_NOSYSTEM: "1",
      HOME: "/nonexistent",
    };
    const stderr = await new Promise<string>((done) => {
      execFile("git", argv, { env, timeout: 60_000 }, (_error, _stdout, text) => done(text));
    });
    await new Promise((done) => server.close(done));
    assert.deepEqual(hosts, [`pinned.invalid:${port}`], stderr);
  });
}
