import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../base/clock.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { changeRefs, readRefs, refsVersion, unalignedRepositories } from "../catalogue/refs.js";
import { newRepositoryRow, setCatalogueRow } from "../catalogue/repositories.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { Store } from "../store/port.js";
import { asNpub, diskAddress, type Npub, RepositoryAddress } from "./address.js";
import { clashOf, Overtaken, RefChanges } from "./change-refs.js";
import { Launcher } from "./launcher.js";
import { absentObjects } from "./objects.js";
import { Repositories } from "./repositories.js";
import type { GitRepository } from "./repository.js";
import { Git, GitTooOldError, isNewEnough } from "./run.js";

const npub = asNpub(`npub1${"q".repeat(58)}`) as Npub;
const owner = "1".repeat(64) as Pubkey;
const main = "refs/heads/main" as RefName;
/** Nothing happens in the background that a test does not ask for. */
const standing = new ManualClock();

describe("repository", () => {
  let folder: string;
  let launcher: Launcher;
  let git: Git;
  let store: Store;
  let repositories: Repositories;
  let count = 0;
  let started = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "repository-test-"));
    launcher = new Launcher();
    git = await Git.find(launcher, {
      onStart: () => {
        started += 1;
      },
    });
    store = createMemoryStore({ clock: systemClock });
    repositories = new Repositories({ gitDataPath: folder, git, clock: standing, store });
  });
  after(async () => {
    await launcher.close();
    await rm(folder, { recursive: true, force: true });
  });

  const fresh = (): Promise<GitRepository> => repositories.create(RepositoryAddress.of(owner, npub, `r${count++}`));
  const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
  const blobTree = async ({ directory }: GitRepository, text: string): Promise<string> => {
    const blob = (await git.mustRun(["hash-object", "-w", "--stdin"], { directory, input: text })).toString().trim();
    const entry = `100644 blob ${blob}\tfile\n`;
    return (await git.mustRun(["mktree"], { directory, input: entry })).toString().trim();
  };
  const commit = async (repository: GitRepository, text: string, parent?: Oid): Promise<Oid> => {
    const tree = await blobTree(repository, text);
    const parents = parent ? ["-p", parent] : [];
    const { directory } = repository;
    return (await git.mustRun(["commit-tree", "-m", text, ...parents, tree], { directory, env }))
      .toString()
      .trim() as Oid;
  };
  const onDisk = async (repository: GitRepository, ref: RefName): Promise<Oid | undefined> =>
    (await repository.refsOnDisk()).refs.get(ref)?.oid;
  const unaligned = async (): Promise<string[]> => {
    const found: string[] = [];
    for await (const { identifier } of unalignedRepositories(store)) found.push(identifier);
    return found;
  };
  const removeObject = ({ directory }: GitRepository, oid: string): Promise<void> =>
    rm(join(directory, "objects", oid.slice(0, 2), oid.slice(2)));

  it("is created bare with HEAD at master, and creating it again changes nothing", async () => {
    const repository = await fresh();
    assert.equal((await git.mustRun(["rev-parse", "--is-bare-repository"], repository)).toString(), "true\n");
    assert.equal((await repository.refs()).head, "refs/heads/master");
    const oid = await commit(repository, "x");
    await repository.updateRefs([{ ref: main, to: oid }]);
    await repositories.create(repository.address);
    assert.equal((await repository.refs()).refs.get(main)?.oid, oid);
    assert.deepEqual(await repository.fsck(), []);
  });

  it("is removed as empty only without refs, without unclaimed data and while nobody uses it; its folder with it", async () => {
    const address = RepositoryAddress.of(owner, npub, "empty", "prs");
    const ref = `refs/nostr/${"1".repeat(64)}` as RefName;
    const eventId = "2".repeat(64) as EventId;
    const repository = await repositories.create(address);
    const oid = await commit(repository, "x");
    await repository.updateRefs([{ ref, to: oid }]);
    assert.equal(await repositories.removeIfEmpty(address), false, "it has a ref");
    await repository.updateRefs([{ ref, to: undefined }]);
    const quarantine = await repository.quarantine();
    await repository.keepUnclaimed(quarantine, eventId, oid);
    assert.equal(await repositories.removeIfEmpty(address), false, "it has data of an unknown event");
    await repository.dropUnclaimed(eventId);
    await repositories.whileUsed(address, async () => {
      assert.equal(await repositories.removeIfEmpty(address), false, "somebody is at work");
      const removing = repositories.removeIfEmpty(address, 1);
      await repositories.create(address);
      assert.equal(await removing, true);
    });
    await repositories.removeIfEmpty(address);
    assert.equal(existsSync(join(folder, "prs", owner)), false);
    assert.equal(await repositories.removeIfEmpty(address), false, "it is not there");
  });

  it("is gone after delete, and can be created anew", async () => {
    const repository = await fresh();
    await repository.updateRefs([{ ref: main, to: await commit(repository, "x") }]);
    await repositories.delete(repository.address);
    assert.equal(await repositories.exists(repository.address), false);
    await repositories.delete(repository.address);
    await repositories.create(repository.address);
    assert.equal((await repository.refs()).refs.size, 0);
  });

  it("updates 2,000 refs with a handful of processes, and nothing for values that are right already", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    const updates = Array.from({ length: 2000 }, (_, i) => ({ ref: `refs/heads/b${i}` as RefName, to: oid }));
    started = 0;
    await repository.updateRefs(updates);
    assert.ok(started <= 2, `${started} processes`);
    started = 0;
    const { version } = await repository.refs();
    await repository.updateRefs(updates);
    assert.equal((await repository.refs()).version, version);
    assert.equal(started, 0);
    assert.deepEqual([...(await repository.refs()).refs.keys()].slice(0, 3), [
      "refs/heads/b0",
      "refs/heads/b1",
      "refs/heads/b10",
    ]);
  });

  it("changes nothing, in rows and in files, when what accompanies the refs cannot be written", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    const changes = new RefChanges().add(repository, [{ ref: main, to: oid }]);
    for (const error of [new Error("the disk is full"), new Overtaken("a state was deleted")]) {
      await assert.rejects(
        repositories.changeRefs(changes, () => Promise.reject(error)),
        error,
      );
    }
    assert.equal((await repository.refs()).refs.size, 0);
    assert.equal(await refsVersion(store, repository.address), 0);
    assert.equal(existsSync(join(repository.directory, main)), false);
    await repositories.changeRefs(changes, async () => undefined);
    assert.equal(await onDisk(repository, main), oid);
  });

  it("a listener that fails does not make written refs look unwritten", async () => {
    const repository = await fresh();
    const to = await commit(repository, "x");
    const faults: unknown[] = [];
    const { failed } = repositories.alignment;
    repositories.alignment.failed = (error) => void faults.push(error);
    const changes = new RefChanges().add(repository, [{ ref: main, to }]);
    const result = await repositories.changeRefs(
      changes,
      async () => "written",
      () => {
        throw new Error("a listener's");
      },
    );
    assert.equal(result, "written");
    assert.equal(faults.length, 1);
    assert.equal(await onDisk(repository, main), to);
    repositories.alignment.failed = failed;
  });

  it("refs of several repositories change in one transaction, or none does", async () => {
    const [a, b] = [await fresh(), await fresh()];
    const tips = [await commit(a, "a"), await commit(b, "b")] as const;
    const changes = new RefChanges().add(a, [{ ref: main, to: tips[0] }]).add(b, [{ ref: main, to: tips[1] }], main);
    const seen = await repositories.changeRefs(changes, async (tx) => {
      tx.setRow("meta", "beside", "written with them");
      return await Promise.all([a, b].map(async ({ address }) => (await readRefs(tx, address))?.refs.size ?? 0));
    });
    assert.deepEqual(seen, [0, 0]);
    assert.equal(await store.row("meta", "beside"), "written with them");
    for (const [index, one] of [a, b].entries()) {
      assert.equal((await readRefs(store, one.address))?.refs.get(main)?.oid, tips[index]);
      assert.equal(await onDisk(one, main), tips[index]);
    }
    assert.equal(await readFile(join(b.directory, "HEAD"), "utf8"), `ref: ${main}\n`);
  });

  it("a change that was planned on older refs is overtaken, and can be made again", async () => {
    const repository = await fresh();
    const [one, two] = [await commit(repository, "1"), await commit(repository, "2")];
    await repository.updateRefs([{ ref: main, to: one }]);
    const elsewhere = new Repositories({ gitDataPath: folder, git, clock: standing, store });
    await elsewhere.open(repository.address).updateRefs([{ ref: main, to: two }]);
    const side = "refs/heads/side" as RefName;
    await assert.rejects(repository.updateRefs([{ ref: side, to: one }]), Overtaken);
    await repository.updateRefs([{ ref: side, to: one }]);
    assert.deepEqual(
      [...(await repository.refs()).refs].map(([ref, { oid }]) => [ref, oid]),
      [
        [main, two],
        [side, one],
      ],
    );
    // The older of two versions that were synced is recorded last.
    await repositories.alignment.flush();
    await elsewhere.alignment.flush();
    assert.ok(!(await unaligned()).includes(repository.address.identifier));
  });

  it("a ref that needs a directory where another is, or will be, is found however many there are", () => {
    const value = { oid: "1".repeat(40) as Oid, peeled: undefined };
    const refs = new Map(["a", "b/c", "d"].map((name) => [`refs/heads/${name}` as RefName, value]));
    const clash = (created: readonly string[], gone: readonly string[] = []) => {
      const updates = [
        ...created.map((name) => ({ ref: `refs/heads/${name}` as RefName, to: value.oid })),
        ...gone.map((name) => ({ ref: `refs/heads/${name}` as RefName, to: undefined })),
      ];
      return clashOf({ refs }, updates)?.map((name) => name.slice("refs/heads/".length));
    };
    for (const many of [[], Array.from({ length: 20 }, (_, index) => `many/${index}`)]) {
      assert.equal(clash([...many, "ab", "b/d", "d"]), undefined);
      assert.deepEqual(clash([...many, "a/x"]), ["a", "a/x"]);
      assert.deepEqual(clash([...many, "b"]), ["b", "b/c"]);
      assert.deepEqual(clash([...many, "n", "n/x"]), ["n", "n/x"]);
      assert.equal(clash([...many, "a/x", "b"], ["a", "b/c"]), undefined);
    }
  });

  it("git cannot keep a ref where another needs a directory: such a change is refused before anything is written", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    const below = "refs/heads/main/below" as RefName;
    await repository.updateRefs([{ ref: main, to: oid }]);
    await assert.rejects(repository.updateRefs([{ ref: below, to: oid }]), /cannot keep/);
    assert.deepEqual([...(await repository.refs()).refs.keys()], [main]);
    await repository.updateRefs([
      { ref: below, to: oid },
      { ref: main, to: undefined },
    ]);
    assert.equal(await onDisk(repository, below), oid);
    assert.equal(await onDisk(repository, main), undefined);
  });

  it("files that a crash left behind their rows, or that somebody changed, follow the rows at the next start", async () => {
    const named = (identifier: string): Promise<GitRepository> =>
      repositories.create(diskAddress({ owner, identifier }));
    const [left, changed, gone] = [await named("left"), await named("changed"), await named("gone")];
    const tips = new Map<GitRepository, Oid>();
    for (const repository of [left, changed, gone]) {
      const oid = await commit(repository, "x");
      tips.set(repository, oid);
      await repository.updateRefs([{ ref: main, to: oid }], main);
    }
    await repositories.alignment.flush();
    // As a crash between the commit and git leaves it.
    const next = await commit(left, "next");
    await store.transact(async (tx) => {
      await changeRefs(tx, left.address, [{ ref: main, value: { oid: next, peeled: undefined } }], main);
      await changeRefs(tx, gone.address, [], main);
    });
    await writeFile(join(changed.directory, main), `${await commit(changed, "planted")}\n`);
    await rm(gone.directory, { recursive: true });
    const later = new Repositories({ gitDataPath: folder, git, clock: standing, store });
    await later.alignAll((error) => assert.fail(String(error)));
    assert.equal(await onDisk(left, main), next);
    assert.equal(await refsVersion(store, gone.address), 0, "its objects are gone");
    assert.deepEqual(await later.open(changed.address).mendFiles(), [main]);
    assert.equal(await onDisk(changed, main), tips.get(changed));
    await later.alignment.flush();
    assert.deepEqual(await unaligned(), []);
  });

  it("ref files that a power cut emptied, and locks that nobody holds, are no obstacle to the rows", async () => {
    const repository = await repositories.create(diskAddress({ owner, identifier: "cut" }));
    const [one, two] = [await commit(repository, "1"), await commit(repository, "2")];
    const side = "refs/heads/side" as RefName;
    await repository.updateRefs(
      [
        { ref: main, to: one },
        { ref: side, to: one },
      ],
      main,
    );
    // Written, not synced: the names are there and the content is not. Nothing was recorded as aligned.
    await writeFile(join(repository.directory, main), "");
    await writeFile(join(repository.directory, "refs/heads/never"), "\0\0\0\0");
    const later = new Repositories({ gitDataPath: folder, git, clock: standing, store });
    const faults: unknown[] = [];
    await later.alignAll((error) => faults.push(error));
    assert.deepEqual(faults, []);
    assert.equal(await onDisk(repository, main), one);
    assert.equal(
      (await git.mustRun(["for-each-ref", "--format=%(refname)"], repository)).toString(),
      `${main}\n${side}\n`,
    );
    // A git whose launcher was killed with it left its locks: nobody heard of its end.
    for (const lock of [`${main}.lock`, "packed-refs.lock"]) await writeFile(join(repository.directory, lock), "");
    const opened = later.open(repository.address);
    await opened.updateRefs([
      { ref: main, to: two },
      { ref: side, to: undefined },
    ]);
    assert.equal(await onDisk(repository, main), two);
    assert.equal(await onDisk(repository, side), undefined);
  });

  it("one whose files cannot be brought in line stops no other, and is tried again", async () => {
    const named = (identifier: string): Promise<GitRepository> =>
      repositories.create(diskAddress({ owner, identifier }));
    const [broken, sound] = [await named("a-broken"), await named("b-sound")];
    const next = new Map<GitRepository, Oid>();
    for (const repository of [broken, sound]) {
      await repository.updateRefs([{ ref: main, to: await commit(repository, "x") }], main);
      const oid = await commit(repository, "next");
      next.set(repository, oid);
      await store.transact((tx) =>
        changeRefs(tx, repository.address, [{ ref: main, value: { oid, peeled: undefined } }], main),
      );
    }
    // No file can be read through a directory: neither git's fault nor a bug.
    await rm(join(broken.directory, "HEAD"));
    await mkdir(join(broken.directory, "HEAD"));
    const later = new Repositories({ gitDataPath: folder, git, clock: standing, store });
    const faults: unknown[] = [];
    await later.alignAll((error) => faults.push(error));
    assert.equal(faults.length, 1);
    assert.equal(await onDisk(sound, main), next.get(sound));
    await rm(join(broken.directory, "HEAD"), { recursive: true });
    await writeFile(join(broken.directory, "HEAD"), "ref: refs/heads/main\n");
    await later.alignment.flush();
    assert.equal(await onDisk(broken, main), next.get(broken));
  });

  it("rows of a directory that is gone are forgotten before it is made anew; one that lost its HEAD keeps them", async (context) => {
    const [gone, headless] = [await fresh(), await repositories.create(diskAddress({ owner, identifier: "headless" }))];
    const tips: Oid[] = [];
    for (const repository of [gone, headless]) {
      tips.push(await commit(repository, "x"));
      await repository.updateRefs([{ ref: main, to: tips.at(-1) }], main);
    }
    await rm(gone.directory, { recursive: true });
    const full = context.mock.method(store, "transact", () => Promise.reject(new Error("no space")));
    await assert.rejects(repositories.create(gone.address), /no space/);
    assert.equal(existsSync(gone.directory), false);
    full.mock.restore();
    await repositories.create(gone.address);
    assert.equal((await gone.refs()).refs.size, 0);
    await rm(join(headless.directory, "HEAD"));
    const later = new Repositories({ gitDataPath: folder, git, clock: standing, store });
    await later.alignAll((error) => assert.fail(String(error)));
    assert.equal((await later.open(headless.address).refs()).refs.get(main)?.oid, tips[1]);
    assert.equal(await readFile(join(headless.directory, "HEAD"), "utf8"), "ref: refs/heads/main\n");
    assert.equal(later.countBehind, 0);
  });

  it("files of which no row speaks are left as they are", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    await git.mustRun(["update-ref", main, oid], repository);
    assert.deepEqual(await repository.mendFiles(), []);
    assert.equal(await onDisk(repository, main), oid);
  });

  it("notices refs changed behind its back and goes on", async () => {
    const repository = await fresh();
    const [one, two, three] = [
      await commit(repository, "1"),
      await commit(repository, "2"),
      await commit(repository, "3"),
    ];
    await repository.updateRefs([{ ref: main, to: one }]);
    await git.mustRun(["update-ref", main, two], repository);
    await repository.updateRefs([{ ref: main, to: three }]);
    assert.equal((await repository.refs()).refs.get(main)?.oid, three);
    assert.equal(await onDisk(repository, main), three);
  });

  it("a git that was killed is followed by another, and when that is killed too the files follow in the background", async (context) => {
    const repository = await fresh();
    const [one, two] = [await commit(repository, "1"), await commit(repository, "2")];
    const old = "refs/heads/old" as RefName;
    await repository.updateRefs([main, old].map((ref) => ({ ref, to: one })));
    await repositories.alignment.flush();
    const run = git.run.bind(git);
    let kills = 0;
    const mocked = context.mock.method(git, "run", (...args: Parameters<typeof run>) => {
      const result = run(...args);
      if (args[0][0] === "update-ref") {
        kills += 1;
        process.kill(launcher.helperPid ?? 0, "SIGKILL");
      }
      return result;
    });
    // What goes is git's to write, and what comes with it.
    await repository.updateRefs([
      { ref: main, to: two },
      { ref: old, to: undefined },
    ]);
    mocked.mock.restore();
    assert.ok(kills > 0);
    assert.equal((await repository.refs()).refs.get(main)?.oid, two, "the rows are written");
    await repository.bringInLine();
    assert.equal(await onDisk(repository, main), two);
    assert.equal(await onDisk(repository, old), undefined);
  });

  it("a git that ended before anybody listened to it is noticed, and its work done by another", async (context) => {
    const repository = await fresh();
    const one = await commit(repository, "1");
    const old = "refs/heads/old" as RefName;
    await repository.updateRefs([{ ref: old, to: one }]);
    const start = git.start.bind(git);
    let ended = 0;
    context.mock.method(git, "start", async (...args: Parameters<typeof start>) => {
      const job = await start(...args);
      if (args[0][0] !== "update-ref" || ended > 0) return job;
      ended += 1;
      const isClosed = once(job.stdout, "close");
      job.end();
      await isClosed;
      return job;
    });
    await repository.updateRefs([
      { ref: main, to: one },
      { ref: old, to: undefined },
    ]);
    assert.equal(ended, 1);
    assert.equal((await repository.refs()).refs.get(main)?.oid, one);
    assert.equal(await onDisk(repository, main), one);
  });

  it("a change of a few refs starts no process; a lock that was left in the way is swept, and git writes them", async () => {
    const repository = await fresh();
    const [one, two] = [await commit(repository, "1"), await commit(repository, "2")];
    const side = "refs/heads/some/side" as RefName;
    started = 0;
    await repository.updateRefs([main, side].map((ref) => ({ ref, to: one })));
    assert.equal(started, 0);
    assert.equal((await git.mustRun(["rev-parse", side], repository)).toString().trim(), one, "git reads it");
    await writeFile(join(repository.directory, `${main}.lock`), "");
    await repository.updateRefs([{ ref: main, to: two }]);
    assert.equal(await onDisk(repository, main), two);
    assert.equal(existsSync(join(repository.directory, `${main}.lock`)), false);
    assert.deepEqual(await repository.mendFiles(), []);
  });

  it("moves HEAD only to a branch that exists", async () => {
    const repository = await fresh();
    await repository.updateRefs([], main);
    assert.equal((await repository.refs()).head, "refs/heads/master");
    await repository.updateRefs([{ ref: main, to: await commit(repository, "x") }]);
    await repository.updateRefs([], main);
    assert.equal((await repository.refs()).head, main);
    assert.equal(await readFile(join(repository.directory, "HEAD"), "utf8"), "ref: refs/heads/main\n");
    await repository.syncRefs();
    // One that is packed, or gone, has no file.
    await repository.syncRefs(
      new Set([main, "refs/heads/main/below" as RefName, "refs/tags/gone/with/folder" as RefName]),
    );
  });

  it("tells which of many tips are incomplete, in a handful of processes when all are fine", async () => {
    const repository = await fresh();
    const tips: Oid[] = [];
    for (let i = 0; i < 12; i++) tips.push(await commit(repository, `tip ${i}`));
    started = 0;
    assert.deepEqual(await repository.missingObjects(tips), new Set());
    assert.ok(started <= 2, `${started} processes`);
    const broken = tips[7] as Oid;
    await removeObject(repository, await blobTree(repository, "tip 7"));
    const absent = "9".repeat(40) as Oid;
    const sha256 = "9".repeat(64) as Oid;
    const missing = await repository.missingObjects([...tips, absent, sha256]);
    assert.deepEqual(missing, new Set([sha256, absent, broken]));
    assert.deepEqual(await repository.missingObjects(["--all" as Oid]), new Set(["--all"]), "not an id: never here");
  });

  it("knows without a process what is not here, and asks git about whatever may be", async () => {
    const repository = await fresh();
    const absent = Array.from({ length: 300 }, (_, at) => at.toString(16).padStart(4, "0").repeat(10) as Oid);
    started = 0;
    assert.deepEqual(await repository.missingObjects(absent), new Set(absent), "in an empty repository");
    const packed = [await commit(repository, "one"), await commit(repository, "two")];
    for (const [at, to] of packed.entries()) await repository.updateRefs([{ ref: `${main}${at}` as RefName, to }]);
    assert.equal(await repository.housekeep(), "done");
    const loose = await commit(repository, "three");
    const folders = new Set(await readdir(join(repository.directory, "objects")));
    const surelyAbsent = absent.filter((oid) => !folders.has(oid.slice(0, 2)));
    started = 0;
    assert.equal((await repository.objectTypes(surelyAbsent)).size, 0);
    assert.equal(started, 0, "neither loose nor in a pack");
    const all = [...absent, ...packed, loose];
    assert.deepEqual([...(await repository.objectTypes(all)).keys()], [...packed, loose]);

    const packs = join(repository.directory, "objects/pack");
    for (const index of (await readdir(packs)).filter((name) => name.endsWith(".idx"))) {
      const bytes = await readFile(join(packs, index));
      const [packedOne = ""] = packed;
      for (const damage of [bytes.subarray(0, 1_100), Buffer.concat([Buffer.from("ffff", "hex"), bytes.subarray(2)])]) {
        await rm(join(packs, index));
        await writeFile(join(packs, index), damage);
        assert.deepEqual(absentObjects(join(packs, ".."), [packedOne as Oid]), new Set(), "nothing is sure");
      }
    }
  });

  it("in SHA-256: made by its row, looked into without git, made anew while empty, and never asked for ids of the other format", async () => {
    const address = diskAddress({ owner, identifier: "long" });
    const row = newRepositoryRow(address, 0);
    const says = (format: "sha1" | "sha256") => store.transact(async (tx) => setCatalogueRow(tx, { ...row, format }));
    await says("sha256");
    const repository = await repositories.create(address);
    assert.equal((await repository.refs()).format, "sha256");
    const oid = await commit(repository, "x");
    assert.equal(oid.length, 64);
    const prefix = oid.slice(0, 40) as Oid;
    assert.deepEqual(await repository.missingObjects([oid, prefix]), new Set([prefix]), "no abbreviation of an id");
    await repository.updateRefs([{ ref: main, to: oid }]);
    await git.mustRun(["repack", "-a", "-d", "-q"], { directory: repository.directory });
    const absent = "9".repeat(64) as Oid;
    const objects = join(repository.directory, "objects");
    assert.deepEqual(absentObjects(objects, [oid, absent]), new Set([absent]));
    await assert.rejects(repository.updateRefs([{ ref: main, to: prefix }]), /another format/);
    await says("sha1");
    assert.equal(await repositories.remakeInFormat(address), false, "it has refs");
    await repository.updateRefs([{ ref: main, to: undefined }]);
    assert.equal(await repositories.remakeInFormat(address), true);
    assert.equal((await repositories.open(address).refs()).format, "sha1");
    assert.deepEqual(await repository.fsck(), []);
  });

  it("threat 1: values that are no object ids never reach git", async () => {
    const repository = await fresh();
    for (const value of ["+refs/heads/x:refs/heads/main", "--upload-pack=x", `${"a".repeat(39)}\n`]) {
      await assert.rejects(repository.updateRefs([{ ref: main, to: value as Oid }]));
    }
    assert.equal((await repository.refs()).refs.size, 0);
    assert.equal(launcher.jobsInFlight, 0);
  });

  it("copies objects from another repository as one pack", async () => {
    const [from, into] = [await fresh(), await fresh()];
    const one = await commit(from, "1");
    const two = await commit(from, "2", one);
    await from.updateRefs([{ ref: main, to: two }]);
    assert.ok(await into.copyObjectsFrom(from, [one]));
    await into.updateRefs([{ ref: main, to: one }]);
    const takeBack = await into.copyObjectsFrom(from, [two]);
    await takeBack?.takeBack();
    assert.deepEqual(await into.missingObjects([one, two]), new Set([two]), "what was there before stays");
    assert.ok(await into.copyObjectsFrom(from, [two]));
    assert.deepEqual(await into.missingObjects([one, two]), new Set());
    assert.equal(await into.copyObjectsFrom(from, ["9".repeat(40) as Oid]), undefined);
    assert.ok((await into.sizeBytes()) > 0);
  });

  it("removes what a killed process left before it is used again", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    const left = ["refs/heads/main.lock", "packed-refs.lock", "HEAD.lock", "objects/pack/tmp_pack_x"];
    for (const path of left) await writeFile(join(repository.directory, path), "");
    await mkdir(join(repository.directory, "objects/tmp_quarantine-x/pack"), { recursive: true });
    await writeFile(join(repository.directory, "config"), "[core]\n\tbare = true\n\tsshCommand = touch /tmp/x\n");
    const later = new Repositories({ gitDataPath: folder, git, clock: standing, store });
    const reopened = later.open(repository.address);
    await reopened.updateRefs([{ ref: main, to: oid }]);
    for (const path of [...left, "objects/tmp_quarantine-x"]) {
      assert.equal(existsSync(join(repository.directory, path)), false, path);
    }
    assert.deepEqual(await reopened.fsck(), []);
  });

  it("threat 8: fsck reports planted hooks, config, alternates and links, and none of them has an effect", async () => {
    const repository = await fresh();
    const { directory } = repository;
    const oid = await commit(repository, "x");
    const proof = join(folder, "proof");
    // The first look would set the config right; this is planted in a running server.
    await repository.refs();
    await mkdir(join(directory, "hooks"));
    for (const hook of ["reference-transaction", "update", "post-update"]) {
      await writeFile(join(directory, "hooks", hook), `#!/bin/sh\ntouch ${proof}\n`, { mode: 0o755 });
    }
    await writeFile(
      join(directory, "config"),
      `[core]\n\tbare = true\n[uploadpack]\n\tpackObjectsHook = touch ${proof}\n`,
    );
    await writeFile(join(directory, "objects/info/alternates"), "/nonexistent\n");
    await symlink("/etc", join(directory, "refs/heads/etc"));
    await repository.updateRefs([{ ref: main, to: oid }]);
    const problems = (await repository.fsck()).join("; ");
    assert.match(problems, /config is not the one this server writes/);
    assert.match(problems, /hooks are planted/);
    assert.match(problems, /alternates is planted/);
    assert.match(problems, /refs\/heads\/etc is a symbolic link/);
    assert.equal(existsSync(proof), false);
  });

  it("fsck and a deep look find a missing object", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    await repository.updateRefs([{ ref: main, to: oid }]);
    await removeObject(repository, await blobTree(repository, "x"));
    assert.notDeepEqual(await repository.fsck(), []);
    assert.deepEqual(await repository.missingObjects([oid], { deep: true }), new Set([oid]));
  });

  it("housekeeping packs objects and refs, keeps everything, and stays away during a push", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    await repository.updateRefs([{ ref: main, to: oid }]);
    await repository.duringPush(async () => assert.equal(await repository.housekeep(), "busy"));
    assert.equal(await repository.housekeep(), "done");
    assert.equal(await repository.housekeep({ cruft: true }), "done");
    assert.match(await readFile(join(repository.directory, "packed-refs"), "utf8"), new RegExp(oid));
    assert.deepEqual(await repository.missingObjects([oid], { deep: true }), new Set());
    const reopened = new Repositories({ gitDataPath: folder, git, clock: standing, store }).open(repository.address);
    assert.equal((await reopened.refs()).refs.get(main)?.oid, oid);
    assert.deepEqual(await repository.fsck(), []);
  });

  it("where objects of a ref are lost, housekeeping joins packs and drops no garbage", async () => {
    const repository = await fresh();
    const side = "refs/heads/side" as RefName;
    const [one, two, lost] = [
      await commit(repository, "1"),
      await commit(repository, "2"),
      await commit(repository, "lost"),
    ];
    await repository.updateRefs([
      { ref: main, to: one },
      { ref: side, to: two },
    ]);
    await removeObject(repository, lost);
    await repository.updateRefs([
      { ref: main, to: lost },
      { ref: side, to: one },
    ]);
    assert.equal(repository.isStuck, true);
    assert.equal(await onDisk(repository, side), one, "what git can hold follows");
    assert.equal(await repository.housekeep({ cruft: true, graceDays: 0 }), "busy");
    assert.equal(await repository.housekeep(), "done");
    assert.equal((await repository.missingObjects([two])).size, 0);
  });

  it("housekeeping drops garbage when its grace is over, and only then; what only pull requests reach is counted", async () => {
    const repository = await fresh();
    const kept = await commit(repository, "kept");
    const proposed = await commit(repository, "proposed".repeat(100), kept);
    const pullRequest = `refs/nostr/${"a".repeat(64)}` as RefName;
    await repository.updateRefs([
      { ref: main, to: kept },
      { ref: pullRequest, to: proposed },
    ]);
    assert.equal(await repository.housekeep(), "done");
    const bytes = await repository.bytesOnlyOf("refs/nostr/");
    assert.ok(bytes !== undefined && bytes > 0 && bytes < (await repository.packFacts()).bytes);
    await repository.updateRefs([{ ref: pullRequest, to: undefined }]);
    assert.equal(await repository.bytesOnlyOf("refs/nostr/"), 0);
    assert.equal(await repository.housekeep({ cruft: true }), "done");
    assert.equal((await repository.packFacts()).hasGarbagePack, true);
    assert.equal(await repository.housekeep(), "done");
    assert.deepEqual(await repository.missingObjects([proposed], { deep: true }), new Set());
    assert.equal((await repository.packFacts()).hasGarbagePack, true, "an ordinary one leaves it as it is");
    assert.equal(await repository.housekeep({ cruft: true, graceDays: 0 }), "done");
    assert.equal((await repository.packFacts()).hasGarbagePack, false);
    assert.deepEqual(await repository.missingObjects([kept, proposed], { deep: true }), new Set([proposed]));
  });

  it("what a killed repack left goes when the repository is opened again, and its packs stay", async () => {
    const repository = await fresh();
    const oid = await commit(repository, "x");
    await repository.updateRefs([{ ref: main, to: oid }]);
    assert.equal(await repository.housekeep(), "done");
    const folderOf = join(repository.directory, "objects/pack");
    const good = (await readdir(folderOf)).sort();
    const orphan = `pack-${"e".repeat(40)}`;
    const left = ["tmp_pack_Ab12", ".tmp-7-pack-1.idx", "multi-pack-index.lock", `${orphan}.pack`, `${orphan}.rev`];
    for (const name of left) await writeFile(join(folderOf, name), "half");
    const reopened = new Repositories({ gitDataPath: folder, git, clock: standing, store }).open(repository.address);
    assert.equal((await reopened.refs()).refs.get(main)?.oid, oid);
    assert.deepEqual((await readdir(folderOf)).sort(), good);
    assert.equal(await reopened.housekeep(), "done");
  });

  it("locks of several repositories are taken in one order", async () => {
    const [a, b] = [await fresh(), await fresh()];
    const order: string[] = [];
    const work = (name: string) => async (): Promise<void> => {
      order.push(`${name} in`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} out`);
    };
    await Promise.all([
      repositories.withLocks([a.address, b.address], work("1")),
      repositories.withLocks([b.address, a.address], work("2")),
    ]);
    assert.deepEqual(order, ["1 in", "1 out", "2 in", "2 out"]);
  });

  it("needs git 2.38, and says how to get it", async () => {
    assert.deepEqual(
      [isNewEnough(2, 37), isNewEnough(2, 38), isNewEnough(3, 0), isNewEnough(1, 99)],
      [false, true, true, false],
    );
    await assert.rejects(Git.find(launcher, { path: "/nonexistent" }), GitTooOldError);
  });
});
