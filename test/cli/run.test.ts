// Tests run verbs in their own process (run.ts). Here a verb of each group also runs as operators run it, as a process
// through bin/holdfast: both must say the same and end alike, and in the test's process nothing may be left behind.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type LineTable, sourceLine } from "../../src/base/one-file.js";
import { runProgram } from "../harness/git-server.js";
import { newKey, OperatorServer } from "../harness/operator-server.js";
import { startChild } from "../harness/server.js";
import { cleanEnvironment, type Ended, endOf, holdfast } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-cli-run-"));
const installed = join(folder, "installed");

/** As a package has it: without sources, so that nothing is compiled; one file, made of what was compiled last. */
function install(): void {
  for (const name of ["scripts", "dist", "src/web"]) mkdirSync(join(installed, name), { recursive: true });
  for (const file of ["bin/holdfast", "scripts/setup.mjs", "package.json"]) cpSync(file, join(installed, file));
  for (const name of ["node_modules", "dist/src", "dist/build.json", "src/web/assets"]) {
    symlinkSync(join(process.cwd(), name), join(installed, name));
  }
  const bundled = spawnSync(process.execPath, ["scripts/bundle.mjs", "--dist", join(installed, "dist")]);
  assert.equal(bundled.status, 0, String(bundled.stderr));
}

function asProcess(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<Ended> {
  const env = cleanEnvironment(environment);
  const stdio = ["ignore", "pipe", "pipe"] as const;
  return endOf(spawn(join(installed, "bin/holdfast"), args, { env, stdio: [...stdio] }));
}

/**
 * The packages and the rooms of `src` that a verb's process loaded, as V8 tells when it counts coverage: files, and in the
 * program's one file the functions that hold a module each.
 */
async function loadedBy(args: readonly string[], environment: Readonly<Record<string, string>>): Promise<string[]> {
  const coverage = mkdtempSync(join(folder, "coverage-"));
  const ended = await asProcess(args, { ...environment, NODE_V8_COVERAGE: coverage });
  assert.equal(ended.code, 0, ended.stderr);
  const files = readdirSync(coverage).map((name) => readFileSync(join(coverage, name), "utf8"));
  const loaded = files.flatMap((text) =>
    (JSON.parse(text) as { result: Covered[] }).result.flatMap(({ url, functions }) => [
      url,
      ...functions.flatMap(({ functionName, ranges }) => (ranges[0]?.count ? [functionName] : [])),
    ]),
  );
  const places = loaded.map((name) => /\bnode_modules\/((?:@[^/]+\/)?[^/]+)\/|\bdist\/src\/([^/]+)\//.exec(name));
  return [...new Set(places.flatMap((found) => found?.[1] ?? found?.[2] ?? []))].sort();
}

interface Covered {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly count: number }[];
  }[];
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

before(install);
after(() => rmSync(folder, { recursive: true, force: true }));

describe("a verb in a test's process and in its own", { timeout: 900_000 }, () => {
  let server: OperatorServer;
  before(async () => {
    server = await OperatorServer.start();
    const client = await server.connect();
    await server.host(client, newKey(), "hosted");
    await client.close();
  });
  after(() => server?.close());

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

describe("the program as people start it", { timeout: 300_000 }, () => {
  const oneFile = join(installed, "dist/program/main.script");

  test("is one file that serves like the others: a repository is published, cloned and shown with coloured sources", async () => {
    const server = await startChild({ program: join(installed, "bin/holdfast") });
    try {
      const home = { HOME: server.folder };
      const work = join(server.folder, "hello");
      const said = async (...args: string[]): Promise<string> => {
        const { code, stdout, stderr } = await asProcess(args, home);
        assert.equal(code, 0, stderr);
        return stdout;
      };
      const git = async (...args: string[]): Promise<string> => {
        const identity = ["-c", "user.name=me", "-c", "user.email=me@example.com"];
        const { code, stdout, stderr } = await runProgram("git", [...identity, ...args], { cwd: server.folder });
        assert.equal(code, 0, stderr);
        return stdout.trim();
      };
      const url = /^page +(\S+)$/m.exec(await said("init", work, "--server", server.domain))?.[1] ?? "";
      writeFileSync(join(work, "a.js"), "export const b = 3;\n");
      await git("-C", work, "add", ".");
      await git("-C", work, "commit", "-qm", "A source");
      await said("publish", work);
      await git("clone", "-q", url, "again");
      assert.equal(await git("-C", "again", "rev-parse", "main"), await git("-C", work, "rev-parse", "main"));
      const page = await (await fetch(`${url}/blob/main/a.js`)).text();
      assert.match(page, /<span class="k">export<\/span> <span class="k">const<\/span> b = <span class="n">3<\/span>;/);
      const style = /href="(\/assets\/holdfast-[^"]+\.css)"/.exec(page)?.[1] ?? "";
      assert.equal((await fetch(server.origin + style)).status, 200, style);
    } finally {
      await server.end();
    }
  });

  test("tells in its stacks which line of which source it was", () => {
    const table = JSON.parse(readFileSync(join(installed, "dist/program/main.lines.json"), "utf8")) as LineTable;
    const lines = readFileSync(oneFile, "utf8").split("\n");
    for (const text of ["function signalGroup(", "async function startService(", "function runServer("]) {
      const at = lines.findIndex((line) => line.includes(text));
      assert.ok(at >= 0, text);
      const column = (lines[at]?.indexOf(text) ?? 0) + text.indexOf("function") + "function ".length;
      const [file = "", line = ""] = (sourceLine(table, at + 1, column + 1) ?? "").split(":");
      assert.ok(readFileSync(file, "utf8").split("\n")[Number(line) - 1]?.includes(text), `${text} ${file}:${line}`);
    }
  });
});
