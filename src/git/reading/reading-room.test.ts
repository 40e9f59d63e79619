import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../../base/clock.js";
import { KeptValues } from "../../base/kept-values.js";
import { ManualClock } from "../../base/testing/manual-clock.js";
import type { Pubkey } from "../../nostr/event.js";
import type { Oid, RefName } from "../../nostr/nip34.js";
import { createMemoryStore } from "../../store/memory/memory-store.js";
import { asNpub, type Npub, RepositoryAddress } from "../address.js";
import { Launcher } from "../launcher.js";
import { Repositories } from "../repositories.js";
import type { GitRepository } from "../repository.js";
import { Git } from "../run.js";
import { ObjectReader } from "./object-reader.js";
import { ReadingRoom } from "./reading-room.js";

const npub = asNpub(`npub1${"q".repeat(58)}`) as Npub;
const owner = "1".repeat(64) as Pubkey;
const main = "refs/heads/main" as RefName;

describe("reading room", () => {
  let folder: string;
  let launcher: Launcher;
  let git: Git;
  let repositories: Repositories;
  let started = 0;
  let count = 0;
  const visitor = { ip: "192.0.2.1", signal: new AbortController().signal, mayStartGit: () => true };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "reading-room-test-"));
    launcher = new Launcher();
    git = await Git.find(launcher, {
      onStart: () => {
        started += 1;
      },
    });
    const store = createMemoryStore({ clock: systemClock });
    repositories = new Repositories({ gitDataPath: folder, git, clock: new ManualClock(), store });
  });
  after(async () => {
    await launcher.close();
    await rm(folder, { recursive: true, force: true });
  });

  const run = async ({ directory }: GitRepository, args: [string, ...string[]], input = ""): Promise<string> =>
    (await git.mustRun(args, { directory, input })).toString().trim();
  /** A repository whose newest commit has this message and one file of this text. */
  async function repositoryWith(
    message: string,
    text = "x\n",
  ): Promise<{ repository: GitRepository; tip: Oid; blob: Oid }> {
    const repository = await repositories.create(RepositoryAddress.of(owner, npub, `r${count++}`));
    const { tip, blob } = await commitTo(repository, message, text);
    return { repository, tip, blob };
  }
  async function commitTo(repository: GitRepository, message: string, text: string, parent?: Oid) {
    const blob = (await run(repository, ["hash-object", "-w", "--stdin"], text)) as Oid;
    const tree = await run(repository, ["mktree"], `100644 blob ${blob}\tfile\n`);
    const parents = parent ? `parent ${parent}\n` : "";
    const commit = `tree ${tree}\n${parents}author A <a> 1700000000 +0000\ncommitter A <a> 1700000000 +0000\n\n${message}\n`;
    const tip = (await run(repository, ["hash-object", "-w", "-t", "commit", "--stdin"], commit)) as Oid;
    await repository.updateRefs([{ ref: main, to: tip }]);
    return { tip, blob };
  }
  const question = (from: Oid) => ({ from, path: Buffer.alloc(0), skip: 0, count: 50 });

  it("a second look starts nothing, and many at once start one", async () => {
    const { repository, tip } = await repositoryWith("Begin");
    const room = new ReadingRoom(systemClock);
    const before = started;
    const looks = await Promise.all(Array.from({ length: 10 }, () => room.log(repository, question(tip), visitor)));
    assert.ok(looks.every((look) => look.ok && look.value.lines.length === 1));
    assert.equal(started, before + 1);
    await room.log(repository, question(tip), visitor);
    assert.equal(started, before + 1);
    const tired = { ...visitor, mayStartGit: () => false };
    assert.ok((await room.log(repository, question(tip), tired)).ok, "what is known costs nothing");
    assert.deepEqual(await room.countCommits(repository, tip, 10, tired), { ok: false, code: "too-many" });
    await room.close();
  });

  it("an endless subject is one short line in a log, and a tip that is no commit shows nothing", async () => {
    const { repository, tip, blob } = await repositoryWith(`${"word ".repeat(200_000)}\n\nBody`);
    const room = new ReadingRoom(systemClock);
    const log = await room.log(repository, question(tip), visitor);
    const [line] = log.ok ? log.value.lines : [];
    assert.ok(line && line.subject.length <= 200 && !line.subject.includes("\n"), String(line?.subject.length));
    assert.equal(await room.commit(repository, blob), undefined);
    const table = await repository.refs();
    assert.deepEqual(await room.reach(repository, table, blob, visitor), { ok: true, value: "nothing" });
    await room.close();
  });

  it("after a push only new commits are looked at for what touched an entry last", async () => {
    const { repository, tip } = await repositoryWith("First");
    const room = new ReadingRoom(systemClock);
    const changes = async (commit: Oid): Promise<string | undefined> => {
      const asked = { commit, ref: main, folder: Buffer.alloc(0), names: new Set(["file"]) };
      const looked = await room.lastChanges(repository, asked, visitor);
      return looked.ok ? looked.value.get("file")?.subject : looked.code;
    };
    assert.equal(await changes(tip), "First");
    const second = await commitTo(repository, "Second", "x\n", tip);
    assert.equal(await changes(second.tip), "First", "it did not touch the file");
    const third = await commitTo(repository, "Third", "y\n", second.tip);
    assert.equal(await changes(third.tip), "Third");
    const rewritten = await commitTo(repository, "Rewritten", "x\n");
    assert.equal(await changes(rewritten.tip), "Rewritten");
    await room.close();
  });

  it("a file beside one that became a link or a repository within keeps its own lines", async () => {
    const { repository } = await repositoryWith("Begin");
    const treeOf = async (entries: readonly (readonly [mode: string, text: string, name: string])[]): Promise<Oid> => {
      const lines: string[] = [];
      for (const [mode, text, name] of entries) {
        if (mode === "160000") lines.push(`${mode} commit ${text}\t${name}\n`);
        else lines.push(`${mode} blob ${await run(repository, ["hash-object", "-w", "--stdin"], text)}\t${name}\n`);
      }
      return (await run(repository, ["mktree", "--missing"], lines.join(""))) as Oid;
    };
    const [one, two] = ["1".repeat(40), "2".repeat(40)];
    const from = await treeOf([
      ["100644", "was a file\n", "a"],
      ["100644", "bin\0ary", "b"],
      ["160000", one, "c"],
      ["120000", "old target", "d"],
      ["100644", "same\n", "e"],
      ["160000", one, "f"],
      ["100644", "", "g"],
      ["100644", "before\n", "z"],
    ]);
    const to = await treeOf([
      ["120000", "target", "a"],
      ["120000", "elsewhere", "b"],
      ["100644", "now a file\n", "c"],
      ["160000", two, "d"],
      ["100755", "same\n", "e"],
      ["160000", two, "f"],
      ["120000", "z", "g"],
      ["100644", "after\n", "z"],
    ]);
    const room = new ReadingRoom(systemClock);
    const looked = await room.diff(repository, from, to, visitor);
    assert.ok(looked.ok);
    const { files, isCut } = looked.value;
    const shown = files.map(({ to: name, status, isBinary, hunks }) => {
      const lines = hunks.flatMap(({ lines }) => lines.filter(({ type }) => type !== "note"));
      const signed = lines.map(({ type, text }) => `${type === "added" ? "+" : "-"}${text}`);
      return [String(name), status, isBinary ? "binary" : "text", ...signed];
    });
    assert.deepEqual(shown, [
      ["a", "changed", "text", "-was a file", "+target"],
      ["b", "changed", "binary", "+elsewhere"],
      ["c", "changed", "text", `-Subproject commit ${one}`, "+now a file"],
      ["d", "changed", "text", "-old target", `+Subproject commit ${two}`],
      ["e", "changed", "text"],
      ["f", "changed", "text", `-Subproject commit ${one}`, `+Subproject commit ${two}`],
      ["g", "changed", "text", "+z"],
      ["z", "changed", "text", "-before", "+after"],
    ]);
    assert.deepEqual([isCut, files.some((file) => file.isCut)], [false, false]);
    await room.close();
  });

  /** The same repository, where a question of history takes git too long while `isSlow` says so. */
  function slowed(repository: GitRepository, isSlow: () => boolean): GitRepository {
    const exit = Promise.resolve({ code: undefined, signal: "SIGTERM", timedOut: true, stderr: "" });
    const late = { stdout: Readable.from([]), stdin: undefined, exit, startMs: 0, end: () => undefined };
    const start: Git["start"] = async (args, call) =>
      isSlow() && args[0] !== "cat-file" ? late : await git.start(args, call);
    const context = { ...repository.context, git: { start } };
    return new Proxy(repository, {
      get(target, name) {
        if (name === "context") return context;
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  it("an answer that git had no time for is none: it is said to be late, and asked for again soon", async () => {
    const { repository, tip } = await repositoryWith("First");
    const second = await commitTo(repository, "Second", "y\n", tip);
    const table = await repository.refs();
    let isSlow = true;
    const slow = slowed(repository, () => isSlow);
    const clock = new ManualClock();
    const room = new ReadingRoom(clock);
    const questions = () =>
      Promise.all([
        room.reach(slow, table, tip, visitor),
        room.mergeBase(slow, tip, second.tip, visitor),
        room.countCommits(slow, second.tip, 10, visitor),
        room.reachedOf(slow, second.tip, [tip], visitor),
        room.beforeMerge(slow, second.tip, tip, visitor),
      ]);
    const late = { ok: false, code: "late" };
    assert.deepEqual(await questions(), [late, late, late, late, late]);
    const unsure = await room.countApart(slow, second.tip, [tip], visitor);
    assert.deepEqual(unsure, { ok: true, value: [undefined] });
    isSlow = false;
    // A hard question does not cost its whole time for each reader.
    assert.deepEqual(await questions(), [late, late, late, late, late]);
    clock.advance(31_000);
    assert.deepEqual(await questions(), [
      { ok: true, value: "branches" },
      { ok: true, value: tip },
      { ok: true, value: 2 },
      { ok: true, value: new Set([tip]) },
      { ok: true, value: undefined },
    ]);
    assert.deepEqual(await room.countApart(slow, second.tip, [tip], visitor), {
      ok: true,
      value: [{ ahead: 0, behind: 1 }],
    });
    // What is known is kept, however long.
    isSlow = true;
    clock.advance(31_000_000);
    assert.ok((await questions()).every(({ ok }) => ok));
    await room.close();
  });

  it("threat 33: a proposal of very many commits leaves the others recognised as merged", async () => {
    const { repository, tip } = await repositoryWith("Merged");
    const head = await commitTo(repository, "Head", "y\n", tip);
    const count = 55_000;
    const commits = Array.from(
      { length: count },
      (_, index) =>
        `commit refs/heads/many\ncommitter A <a@b> ${1_700_000_001 + index} +0000\ndata 0\n${index === 0 ? `from ${tip}\n` : ""}\n`,
    );
    await run(repository, ["fast-import", "--quiet"], commits.join(""));
    const many = (await run(repository, ["rev-parse", "refs/heads/many"])) as Oid;
    const room = new ReadingRoom(systemClock);
    const looked = await room.reachedOf(repository, head.tip, [many, tip, "0".repeat(40) as Oid], visitor);
    assert.deepEqual(looked, { ok: true, value: new Set([tip]) });
    await room.close();
  });

  it("a file of a folder too wide to be shown is found all the same", async () => {
    const { repository, blob } = await repositoryWith("Begin");
    const nameOf = (index: number): string => `${String(index).padStart(6, "0")}-${"n".repeat(200)}`;
    const lines = Array.from({ length: 40_000 }, (_, index) => `100755 blob ${blob}\t${nameOf(index)}\n`);
    const wide = (await run(repository, ["mktree"], lines.join(""))) as Oid;
    const root = (await run(repository, ["mktree"], `040000 tree ${wide}\twide\n`)) as Oid;
    const room = new ReadingRoom(systemClock);
    assert.equal(await room.folder(repository, wide), "too-large");
    const at = (...path: string[]) =>
      room.entryAt(
        repository,
        root,
        path.map((name) => Buffer.from(name)),
        visitor,
      );
    for (const index of [0, 23_456, 39_999]) {
      const name = nameOf(index);
      const entry = { kind: "program", name: Buffer.from(name), oid: blob };
      assert.deepEqual(await at("wide", name), { ok: true, value: entry });
    }
    for (const name of [nameOf(40_000), "n", ""])
      assert.deepEqual(await at("wide", name), { ok: true, value: undefined });
    assert.deepEqual(await at("wide", nameOf(1), "x"), { ok: true, value: undefined });
    await room.close();
  });

  it("what a commit's files take is told without those before it", async () => {
    const { repository, tip } = await repositoryWith("Large", randomBytes(40_000).toString("hex"));
    const second = await commitTo(repository, "Small", "x\n", tip);
    const room = new ReadingRoom(systemClock);
    const stored = async (commit: Oid): Promise<number> => {
      const looked = await room.storedBytes(repository, commit, visitor);
      return looked.ok ? looked.value : Number.NaN;
    };
    const [large, small] = [await stored(tip), await stored(second.tip)];
    assert.ok(large > 40_000 && large < 80_000 && small > 0 && small < 1_000, `${large} ${small}`);
    await room.close();
  });

  it("a process for objects that nobody asks is ended, one that was killed is replaced", async () => {
    const { repository, blob } = await repositoryWith("Begin", "text\n");
    const clock = new ManualClock();
    const reader = new ObjectReader(clock);
    const read = async (): Promise<string | undefined> => String((await reader.read(repository, blob, 100))?.content);
    const before = started;
    assert.deepEqual([await read(), await read(), started - before], ["text\n", "text\n", 1]);
    clock.advance(31_000);
    await untilNone(repository.directory);
    assert.deepEqual([await read(), started - before], ["text\n", 2]);
    for (const pid of await processesOf(repository.directory)) process.kill(pid, "SIGKILL");
    await untilNone(repository.directory);
    assert.deepEqual([await read(), started - before], ["text\n", 3]);
    assert.equal(await reader.read(repository, "0".repeat(40) as Oid, 100), undefined);
    assert.equal((await reader.read(repository, blob, 2))?.content, undefined);
    await reader.close();
    await untilNone(repository.directory);
  });

  it("of processes for objects there are only so many; the one asked longest ago makes room", async () => {
    const reader = new ObjectReader(new ManualClock());
    const made = await Promise.all(Array.from({ length: 8 }, () => repositoryWith("Begin")));
    for (const { repository, blob } of made) assert.ok(await reader.read(repository, blob, 100));
    const [first] = made;
    await untilNone(first?.repository.directory ?? "");
    const running = await Promise.all(
      made.map(async ({ repository }) => (await processesOf(repository.directory)).length),
    );
    assert.ok(running.reduce((sum, one) => sum + one, 0) <= 6, String(running));
    await reader.close();
  });

  it("values are kept up to their weight: those asked for longest ago go first, a heavy one not at all", () => {
    const kept = new KeptValues<string>(100);
    for (const name of ["a", "b", "c"]) kept.set(name, name, 12);
    for (let index = 0; index < 6; index++) kept.set(`more ${index}`, "", 10);
    assert.equal(kept.get("a"), "a");
    kept.set("d", "d", 12);
    assert.deepEqual([kept.get("a"), kept.get("b"), kept.get("d")], ["a", undefined, "d"]);
    kept.set("heavy", "", 13);
    assert.equal(kept.get("heavy"), undefined);
    assert.ok(kept.weight <= 100);
  });

  async function processesOf(directory: string): Promise<number[]> {
    const found: number[] = [];
    for (const name of await readdir("/proc")) {
      if (!/^\d+$/.test(name)) continue;
      const command = await readFile(`/proc/${name}/cmdline`, "latin1").catch(() => "");
      if (command.includes("cat-file") && command.includes(directory)) found.push(Number(name));
    }
    return found;
  }
  async function untilNone(directory: string): Promise<void> {
    while ((await processesOf(directory)).length > 0) await new Promise((resolve) => setImmediate(resolve));
  }
});
