import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { cleanEnvironment } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-life-"));
after(() => rmSync(folder, { recursive: true }));

class Running {
  stdout = "";
  stderr = "";
  readonly ended: Promise<number | null>;
  readonly #child: ChildProcess;

  /** The real server; or, to see what happens when rooms misbehave, the same life around rooms that do. */
  constructor(environment: Record<string, string>, rooms: "real" | "misbehaving" = "real") {
    const program = rooms === "real" ? ["dist/src/main.js", "serve"] : ["dist/test/cli/life-program.js"];
    this.#child = spawn(process.execPath, program, {
      env: cleanEnvironment({ NGIT_DOMAIN: "x", NGIT_BIND_ADDRESS: "127.0.0.1:0", ...environment }),
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve) => this.#child.on("close", resolve));
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async logged(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.stderr)) {
      await Promise.race([
        new Promise((resolve) => this.#child.stderr?.once("data", resolve)),
        this.ended.then((code) => assert.fail(`ended with ${code} before ${pattern}: ${this.stderr}`)),
      ]);
    }
  }
}

test("a second server on the same data is refused with the first one's process number; SIGTERM gives the lock back and exits 0", async () => {
  const data = mkdtempSync(join(folder, "term-"));
  const server = new Running({ NGIT_DATA_PATH: data });
  await server.logged(/"listening"/);
  assert.ok(readdirSync(join(data, "relay")).includes("holdfast.lock"));
  const second = new Running({ NGIT_DATA_PATH: data });
  assert.equal(await second.ended, 1);
  assert.match(second.stderr, /in use by process \d+: stop it, or set NGIT_DATA_PATH/);
  server.signal("SIGTERM");
  assert.equal(await server.ended, 0);
  assert.match(server.stderr, /"stopped"/);
  const left = readdirSync(join(data, "relay"));
  assert.deepEqual([left.includes("holdfast.lock"), left.includes("server.key")], [false, true]);
});

test("rooms are closed in reverse order", async () => {
  const server = new Running({ NGIT_DATABASE_BACKEND: "memory" }, "misbehaving");
  await server.logged(/"listening"/);
  server.signal("SIGTERM");
  assert.equal(await server.ended, 0);
  assert.equal(server.stdout, "store opened\nservice closed\nverifier closed\nstore closed\n");
});

test("a server whose copy of a cluster's data is of no use closes and starts again, until it can", async () => {
  const server = new Running({ NGIT_DATABASE_BACKEND: "memory", WORTHLESS: "1" }, "misbehaving");
  await server.logged(/"listening"[\s\S]*begins anew[\s\S]*no snapshot yet[\s\S]*begins anew[\s\S]*"listening"/);
  server.signal("SIGTERM");
  assert.equal(await server.ended, 0);
  const once = "store opened\nservice closed\nverifier closed\nstore closed\n";
  assert.equal(server.stdout, once + once);
});

test("with the memory backend nothing is written; SIGHUP reads the settings again and the server goes on; SIGINT ends it with 0", async () => {
  const data = join(folder, "memory");
  const server = new Running({ NGIT_DATA_PATH: data, NGIT_DATABASE_BACKEND: "memory" });
  await server.logged(/"listening"/);
  server.signal("SIGHUP");
  await server.logged(/settings read again/);
  server.signal("SIGINT");
  assert.equal(await server.ended, 0);
  assert.ok(!existsSync(join(data, "relay")));
});

test("a rejected promise nobody awaited ends the process with the reason in the log", async () => {
  const server = new Running({ NGIT_DATABASE_BACKEND: "memory" }, "misbehaving");
  await server.logged(/"listening"/);
  server.signal("SIGUSR2");
  assert.equal(await server.ended, 1);
  assert.match(server.stderr, /"level":"fatal".*planted fault/);
});

test("closing that hangs is cut short", async () => {
  const server = new Running({ NGIT_DATABASE_BACKEND: "memory", STALL: "1" }, "misbehaving");
  await server.logged(/"listening"/);
  const begun = performance.now();
  server.signal("SIGTERM");
  assert.equal(await server.ended, 1);
  assert.ok(performance.now() - begun < 30_000);
  assert.match(server.stderr, /closing took too long/);
});

test("a port in use is a refusal that names the setting", async () => {
  const holder = createServer();
  await new Promise<void>((resolve) => holder.listen(0, "127.0.0.1", resolve));
  const { port } = holder.address() as AddressInfo;
  const server = new Running({ NGIT_DATABASE_BACKEND: "memory", NGIT_BIND_ADDRESS: `127.0.0.1:${port}` });
  assert.equal(await server.ended, 1);
  holder.close();
  assert.match(server.stderr, /EADDRINUSE.*NGIT_BIND_ADDRESS/);
});
