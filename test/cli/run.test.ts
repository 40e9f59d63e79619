// Tests run verbs in their own process (run.ts). Here a verb of each group also runs as operators run it, as a process
// through bin/holdfast: both must say the same and end alike, and in the test's process nothing may be left behind.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { newKey, OperatorServer } from "../harness/operator-server.js";
import { cleanEnvironment, type Ended, endOf, holdfast } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-cli-run-"));
const installed = join(folder, "installed");

/** As a package has it: without sources, so that nothing is compiled. */
function install(): void {
  mkdirSync(join(installed, "scripts"), { recursive: true });
  for (const file of ["bin/holdfast", "scripts/setup.mjs", "package.json"]) cpSync(file, join(installed, file));
  symlinkSync(join(process.cwd(), "dist"), join(installed, "dist"));
}

function asProcess(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Ended> {
  const env = cleanEnvironment(environment);
  const stdio = ["ignore", "pipe", "pipe"] as const;
  return endOf(spawn(join(installed, "bin/holdfast"), args, { env, stdio: [...stdio] }));
}

/** The packages and the rooms of `src` that a verb's process loaded, as V8 tells when it counts coverage. */
async function loadedBy(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<string[]> {
  const coverage = mkdtempSync(join(folder, "coverage-"));
  const ended = await asProcess(args, { ...environment, NODE_V8_COVERAGE: coverage });
  assert.equal(ended.code, 0, ended.stderr);
  const files = readdirSync(coverage).map((name) => readFileSync(join(coverage, name), "utf8"));
  const urls = files.flatMap((text) =>
    (JSON.parse(text) as { result: { url: string }[] }).result.map(({ url }) => url),
  );
  const places = urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/|\/dist\/src\/([^/]+)\//.exec(url));
  return [...new Set(places.flatMap((found) => found?.[1] ?? found?.[2] ?? []))].sort();
}

/** What a verb could leave behind in the process it ran in. */
function processState(): unknown {
  const umask = process.umask(0);
  process.umask(umask);
  const openFiles = readdirSync("/proc/self/fd").flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)];
    } catch {
      return [];
    }
  });
  return {
    umask,
    folder: process.cwd(),
    exitCode: process.exitCode,
    environment: { ...process.env },
    listeners: process.eventNames().map((name) => [name, process.listenerCount(name)]),
    openFiles: openFiles.filter((path) => path.startsWith(folder)),
  };
}

describe("a verb in a test's process and in its own", { timeout: 900_000 }, () => {
  let server: OperatorServer;
  before(async () => {
    install();
    server = await OperatorServer.start();
    const client = await server.connect();
    await server.host(client, newKey(), "hosted");
    await client.close();
  });
  after(async () => {
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const sameBothWays = async (code: number, ...args: string[]): Promise<void> => {
    const own = await asProcess(args, server.environment);
    assert.equal(own.code, code, own.stderr);
    assert.deepEqual(await holdfast(args, server.environment), own, args.join(" "));
  };

  test("verbs that only read settings say the same and exit alike, also when they are called wrongly", async () => {
    await sameBothWays(0, "version");
    await sameBothWays(0, "--version");
    await sameBothWays(0, "config", "show", "--changed");
    await sameBothWays(0, "completion", "fish");
    await sameBothWays(0, "serve", "--help");
    await sameBothWays(2, "config", "check", "--log-level", "loud", "--json");
    await sameBothWays(2, "stauts");
  });

  test("verbs that ask the running server say the same", async () => {
    const status = await asProcess(["status"], server.environment);
    assert.equal(status.code, 0, status.stderr);
    assert.match(status.stdout, /^ready {6}yes$/m);
    await sameBothWays(0, "repos", "list", "--json");
    await sameBothWays(0, "purgatory", "list");
    await sameBothWays(0, "events", "scan");
    await sameBothWays(1, "why", "12".repeat(32));
    const backup = await asProcess(["backup", join(folder, "backups"), "--json"], server.environment);
    assert.equal(backup.code, 0, backup.stderr);
    assert.equal((JSON.parse(backup.stdout) as { events: number }).events, 2);
  });

  test("a verb loads only what it works with, so that it starts at once", async () => {
    assert.deepEqual(await loadedBy(["version"], {}), ["base", "cli", "commander"]);
    const status = ["@scure/base", "base", "cli", "commander", "config", "nostr", "operator"];
    assert.deepEqual(await loadedBy(["status"], server.environment), status);
    const help = await loadedBy(["--help"], {});
    for (const late of ["backup", "bench", "sync", "store", "lmdb", "pino", "prom-client", "ws"]) {
      assert.ok(!help.includes(late), late);
    }
  });

  test("verbs that open the data themselves say the same", async () => {
    await server.stop();
    await sameBothWays(0, "events", "export");
    await sameBothWays(0, "repos", "fsck");
    await sameBothWays(1, "status");
    const restored = { NGIT_DATA_PATH: join(folder, "restored"), NGIT_DOMAIN: "localhost" };
    assert.match((await asProcess(["restore", join(folder, "backups")], restored)).stdout, /^restored .*verified$/m);
    assert.match((await asProcess(["compact"], restored)).stdout, /2 events/);
  });

  test("in the test's process nothing is left of a verb", async () => {
    const data = { NGIT_DATA_PATH: join(folder, "left"), NGIT_DOMAIN: "localhost" };
    const relay = ["--relay", "ws://127.0.0.1:1"];
    const earlier = processState();
    for (const [code, ...args] of [
      [0, "restore", join(folder, "backups")],
      [0, "repos", "gc"],
      [0, "events", "scan"],
      [0, "backup", join(folder, "again")],
      [0, "compact"],
      [1, "repos", "import", folder, ...relay],
      [2, "events", "scan", "--filter", "{"],
      [2, "serve", "--bind-adress", "x"],
    ] as const) {
      const ended = await holdfast(args, data, folder);
      assert.equal(ended.code, code, args.join(" ") + ended.stderr);
    }
    await holdfast(["doctor", "--bind-address", "127.0.0.1:0"], data, folder);
    assert.deepEqual(processState(), earlier);
    const running = process.getActiveResourcesInfo().filter((name) => name === "MessagePort" || name === "ProcessWrap");
    assert.deepEqual(running, [], "worker threads and child processes");
  });
});
