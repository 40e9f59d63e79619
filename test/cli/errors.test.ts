// The one boundary of all verbs: what the operating system refuses ends each of them with one sentence and exit code 1,
// as JSON where that was asked for, and never with a stack.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { cliPage } from "../../src/cli/reference-pages.js";
import { runCommandLine } from "../../src/cli/run.js";
import { abilitiesOn } from "../../src/verb-abilities.js";
import { startInProcess } from "../harness/server.js";
import { type Ended, holdfast } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-errors-"));
const at = (name: string): string => join(folder, name);

/** Every command that does something, with arguments that let it begin. */
async function everyVerb(): Promise<string[][]> {
  const sections = (await cliPage()).split("\n## holdfast ").slice(1);
  return sections
    .map((section) => [section.slice(0, section.indexOf("\n")), /^Usage: (.*)$/m.exec(section)?.[1] ?? ""] as const)
    .filter(([, usage]) => !usage.endsWith("[command]"))
    .map(([name, usage]) => {
      const words = [...usage.matchAll(/<([a-z|/]+)>/g)].map(([, word = ""]) => argumentFor[word] ?? "x");
      return [...name.split(" "), ...words];
    });
}

const argumentFor: Readonly<Record<string, string>> = {
  list: "event-blacklist",
  type: "event",
  target: "12".repeat(32),
  shell: "bash",
  event: "12".repeat(32),
  subject: "12".repeat(32),
};

/** Writes until the disk takes nothing more. */
function fill(file: string): void {
  const descriptor = openSync(file, "w");
  try {
    for (;;) writeSync(descriptor, Buffer.alloc(4096));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  } finally {
    closeSync(descriptor);
  }
}

/** Runs a verb to which the system refuses the first thing it asks for. */
async function refused(args: readonly string[], error: Error): Promise<Ended> {
  let [stdout, stderr] = ["", ""];
  let hasThrown = false;
  const refuse = (): undefined => {
    if (hasThrown) return undefined;
    hasThrown = true;
    throw error;
  };
  const environment = new Proxy<Record<string, string>>({}, { get: refuse });
  const terminal = {
    // Commands that read no settings only write their answer.
    async out(text: string) {
      refuse();
      stdout += text;
    },
    error(text: string) {
      stderr += text;
    },
    ...{ showsProgress: false, columns: 100 },
    async *lines() {},
  };
  const code = await runCommandLine(["node", "holdfast", ...args], abilitiesOn(terminal, environment));
  return { code, stdout, stderr };
}

describe("what the system refuses", { timeout: 300_000 }, () => {
  before(() => {
    writeFileSync(at("file"), "");
    chmodSync(folder, 0o755);
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const isSentence = ({ code, stdout, stderr }: Ended, what: string): void => {
    assert.equal(code, 1, `${what}: ${stdout}${stderr}`);
    assert.match(stderr, /^holdfast: [^\n]+\n$/, what);
    assert.doesNotMatch(stderr, /Error|node:|\.js:\d/, what);
  };

  test("ends every verb with one sentence, and with JSON when asked", async () => {
    const codes = ["EACCES", "ENOENT", "ENOTDIR", "EROFS", "ENOSPC", "EADDRINUSE"];
    const verbs = await everyVerb();
    assert.ok(verbs.length > 40);
    for (const [index, verb] of verbs.entries()) {
      // Each verb meets each kind of refusal over the table; all of them would be the same boundary again.
      for (const code of index % 5 === 0 ? codes : [codes[index % codes.length] ?? ""]) {
        const error = Object.assign(new Error(`${code}: as Node says it`), { code, syscall: "open", path: at("x") });
        if (verb[0] === "bench") continue;
        isSentence(await refused(verb, error), `${verb.join(" ")} ${code}`);
        const json = await refused([...verb, "--json"], error);
        const answer = JSON.parse(json.stdout) as Record<string, unknown>;
        assert.deepEqual([json.code, answer.ok, answer.code, json.stderr], [1, false, code, ""], verb.join(" "));
      }
    }
  });

  test("about the data directory names the path: a file in its place, or another user's", async () => {
    const verbs = [["repos", "list"], ["compact"], ["events", "scan"], ["lists", "show"], ["purgatory", "list"]];
    for (const args of verbs) {
      const ended = await holdfast(args, { NGIT_DATA_PATH: at("file") });
      isSentence(ended, args.join(" "));
      assert.match(ended.stderr, /file is a file, and a folder is needed there \(ENOTDIR\): name another path/);
    }
    mkdirSync(at("theirs/relay"), { recursive: true });
    chmodSync(at("theirs"), 0);
    const isRoot = process.geteuid?.() === 0;
    for (const args of [...verbs, ["backup", at("theirs/backup")]]) {
      if (isRoot) process.seteuid?.(65_534);
      const ended = await holdfast(args, { NGIT_DATA_PATH: at("theirs") }).finally(() => {
        if (isRoot) process.seteuid?.(0);
      });
      isSentence(ended, args.join(" "));
      const cure = isRoot ? `(sudo holdfast ${args.join(" ")})` : "chmod u+rwX";
      assert.ok(ended.stderr.includes(cure), ended.stderr);
    }
    chmodSync(at("theirs"), 0o755);
  });

  test("about a named file names that file", async () => {
    mkdirSync(at("data/relay"), { recursive: true });
    const data = { NGIT_DATA_PATH: at("data") };
    for (const [args, told] of [
      [["backup", at("file")], /file is a file, and a folder is needed there/],
      [["backup", at("file/child")], /file is a file, and a folder is needed there/],
      [["bench", "--folder", at("file")], /file is a file, and a folder is needed there/],
      [["events", "import", at("none.jsonl")], /none\.jsonl is not there \(ENOENT\): check the name/],
      [["events", "import", folder], /is a folder: name a file/],
      [["events", "export", "--output", at("file")], /file is there already \(EEXIST\): name another/],
      [["events", "export", "--output", at("file/x")], /file is a file, and a folder is needed there/],
    ] as const) {
      const ended = await holdfast(args, data);
      isSentence(ended, args.join(" "));
      assert.match(ended.stderr, told, args.join(" "));
    }
  });

  test("about a start tells the address or the file, whichever it was", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const address = `127.0.0.1:${(other.address() as { port: number }).port}`;
    const start = (settings: Record<string, string>) => startInProcess({ backend: "lmdb", settings });
    await assert.rejects(start({ NGIT_BIND_ADDRESS: address }), {
      name: "StartRefusal",
      message: new RegExp(`^${address} is in use by another process \\(EADDRINUSE\\): stop that, `),
    });
    // The first port was open by then: it must be closed again, or the process would live on.
    await assert.rejects(start({ NGIT_METRICS_BIND_ADDRESS: address }), {
      message: new RegExp(`^${address} is in use`),
    });
    await assert.rejects(start({ NGIT_RELAY_DATA_PATH: at("file/relay") }), {
      message: /file is a file, and a folder is needed there \(ENOTDIR\): name another path$/,
    });
    await new Promise((resolve) => other.close(resolve));
  });

  test("about a disk that is full or can only be read says so, on real ones", async (t) => {
    const small = at("small");
    mkdirSync(small);
    if (spawnSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", small]).status !== 0) {
      t.skip("this machine does not let tests mount a disk");
      return;
    }
    t.after(() => spawnSync("umount", [small]));
    mkdirSync(join(small, "folder"));
    const verbs = [
      ["backup", join(small, "folder/new")],
      ["bench", "--quick", "--folder", join(small, "folder")],
      ["events", "export", "--output", join(small, "folder/new.jsonl")],
      ["init", join(small, "folder/repository"), "--key", join(small, "folder/new.key")],
    ];
    const start = () =>
      startInProcess({
        backend: "lmdb",
        settings: { NGIT_RELAY_DATA_PATH: join(small, "relay"), NGIT_GIT_DATA_PATH: join(small, "git") },
      });
    for (const [code, words] of [
      ["ENOSPC", "is full"],
      ["EROFS", "is read-only"],
    ] as const) {
      if (code === "ENOSPC") fill(join(small, "all of it"));
      else assert.equal(spawnSync("mount", ["-o", "remount,ro", small]).status, 0);
      for (const args of verbs) {
        // Without events it writes nothing, which there is always room for.
        if (code === "ENOSPC" && args[0] === "events") continue;
        const ended = await holdfast(args, { NGIT_DATA_PATH: at("data") });
        isSentence(ended, `${code}: ${args.join(" ")}`);
        assert.match(ended.stderr, new RegExp(`${words}.*\\(${code}\\)`), args.join(" "));
      }
      await assert.rejects(start(), { name: "StartRefusal", message: new RegExp(`\\(${code}\\)`) });
    }
  });

  test("a flag that is not known is named as it was typed", async () => {
    const ended = await holdfast(["doctor", "-x"]);
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /^ {2}-x: is an unknown flag/m);
  });

  test("a fault of the program is one sentence that asks for a report", async () => {
    const ended = await refused(["status"], new TypeError("x is not a function"));
    assert.equal(ended.code, 1);
    assert.match(
      ended.stderr,
      /^holdfast: this is a fault of the program: TypeError: x is not a function\. [^\n]*report it\n$/,
    );
  });
});
