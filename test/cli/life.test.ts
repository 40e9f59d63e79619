import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gentleMs } from "../../src/git/launcher-helper.js";
import { verificationAdvice } from "../../src/nostr/verify/advice.js";
import { stopWithinMs } from "../../src/run-until-signal.js";
import { AdminVisitor } from "../harness/admin-visitor.js";
import { freePort } from "../harness/free-port.js";
import { until } from "../harness/server.js";
import { cleanEnvironment, holdfast, program } from "./run.js";

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

test("a server that cannot even be closed to begin anew ends, so that it is started again", async () => {
  const settings = { NGIT_DATABASE_BACKEND: "memory", WORTHLESS: "1", STALL: "1" };
  const left = new Running(settings, "misbehaving");
  assert.equal(await left.ended, 1);
  assert.match(left.stderr, /begins anew[\s\S]*closing took too long/);
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

test("closing that hangs is cut short, and the part that hung is named", async () => {
  const server = new Running({ NGIT_DATABASE_BACKEND: "memory", STALL: "1" }, "misbehaving");
  await server.logged(/"listening"/);
  const begun = performance.now();
  server.signal("SIGTERM");
  assert.equal(await server.ended, 1);
  assert.ok(performance.now() - begun < 30_000);
  assert.match(server.stderr, /closing took too long","part":"service"/);
});

test("a git process that does not heed SIGTERM is killed while a server that stops still waits for it", () => {
  assert.ok(gentleMs + 1_000 < stopWithinMs, `${gentleMs} of ${stopWithinMs} ms`);
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

/** What a server says on a terminal, and how it ends when that is closed. Its lock goes only when it ends in good order. */
async function onTerminal(data: string, ...flags: string[]): Promise<string> {
  const command = [process.execPath, program, "serve", ...flags].join(" ");
  const terminal = spawn("script", ["-qec", command, "/dev/null"], {
    env: cleanEnvironment({
      NGIT_DOMAIN: "x.example",
      NGIT_BIND_ADDRESS: "127.0.0.1:0",
      NGIT_DATA_PATH: data,
      NO_COLOR: "1",
    }),
    stdio: ["pipe", "pipe", "inherit"],
  });
  let shown = "";
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
  });
  const isUp = (): boolean =>
    existsSync(join(data, "relay/admin.sock")) && (flags.length > 0 || shown.includes("Ctrl+C"));
  assert.ok(await until(isUp, 60_000), shown);
  terminal.kill("SIGKILL");
  assert.ok(
    await until(() => !existsSync(join(data, "relay/holdfast.lock")), 30_000),
    "it ended and gave the lock back",
  );
  return shown;
}

const hasScript = spawnSync("script", ["--version"]).status === 0;

test("on a terminal a server greets, unless it is to be quiet, and stops when the terminal is closed", {
  skip: !hasScript,
}, async () => {
  const data = mkdtempSync(join(folder, "terminal-"));
  const greeted = await onTerminal(data);
  assert.match(greeted, /INFO {2}listening/);
  assert.match(greeted, /open +https:\/\/x\.example\/\r?\n +relay +wss:\/\/x\.example/);
  assert.ok(greeted.includes(data), "where the data is");
  assert.doesNotMatch(greeted, /\x1b\[/, "NO_COLOR");
  assert.equal(await onTerminal(data, "--quiet"), "");
});

test("where only WebAssembly checks signatures, the log says so once, and status, doctor and the admin page name the package", async () => {
  const data = mkdtempSync(join(folder, "wasm-"));
  // As on a machine for which no package has a library.
  const hooks = join(folder, "no-libraries.mjs");
  writeFileSync(
    hooks,
    `import Module, { register } from "node:module";
const isGone = (name) => name === "koffi" || name.startsWith("secp256k1/");
const load = Module._load;
Module._load = (name, ...rest) => { if (isGone(name)) throw new Error("no such library here"); return load(name, ...rest); };
register("data:text/javascript," + encodeURIComponent(\`export const resolve = (name, context, next) => {
  if (name === "koffi") throw new Error("no such library here");
  return next(name, context);
};\`));`,
  );
  const port = await freePort();
  const advice = verificationAdvice("wasm") ?? assert.fail();
  const settings = { NGIT_DATA_PATH: data, NGIT_BIND_ADDRESS: `127.0.0.1:${port}`, NGIT_DOMAIN: `localhost:${port}` };
  const environment = { ...settings, NODE_OPTIONS: `--import=${hooks}` };
  const server = new Running(environment);
  await server.logged(/"listening"/);
  assert.deepEqual(
    server.stderr
      .split("\n")
      .filter((line) => line.includes(advice))
      .map((line) => (JSON.parse(line) as { level: string }).level),
    ["warn"],
  );
  const status = await holdfast(["status"], settings);
  assert.ok(status.stdout.includes(`signatures wasm: ${advice}`), status.stdout);
  const link = await holdfast(["admin", "link"], settings);
  const visitor = new AdminVisitor(`http://localhost:${port}`);
  await visitor.logInByLink(link.stdout.trim());
  assert.match(await visitor.page("/admin"), /Worth a look[\s\S]*Signatures are checked in WebAssembly/);
  server.signal("SIGTERM");
  assert.equal(await server.ended, 0);
  const doctor = spawnSync(process.execPath, [program, "doctor"], {
    env: cleanEnvironment(environment),
    encoding: "utf8",
  });
  assert.ok(doctor.stdout.includes(`note  verification  ${advice}`), doctor.stdout + doctor.stderr);
});
