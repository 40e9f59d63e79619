import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { listedPacks, packList } from "../catalogue/packs.js";
import { changeRefs, readRefs } from "../catalogue/refs.js";
import { newRepositoryRow, setCatalogueRow } from "../catalogue/repositories.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import { Overtaken, RefChanges } from "./change-refs.js";
import { PackFollowers } from "./pack-followers.js";
import { copyObjects } from "./quarantine.js";
import type { GitRepository } from "./repository.js";
import { packsIn } from "./repository-files.js";
import { ObjectsUnavailableError } from "./run.js";
import { type Machine, type Machines, startMachines } from "./testing/machines.js";

const owner = "1".repeat(64) as Pubkey;
const main = "refs/heads/main" as RefName;

describe("packs that several machines share", () => {
  let world: Machines;
  let a: Machine;
  let b: Machine;
  let count = 0;
  before(async () => {
    world = await startMachines();
    a = world.machine("a");
    b = world.machine("b");
  });
  after(() => world.close());

  const fresh = (area: "main" | "prs" = "main"): RepositoryAddress =>
    diskAddress({ owner, identifier: `r${count++}`, area });
  /** Gone with the test, however it ends: it would follow the others' packs, and put lost ones again. */
  const comesLate = (test: TestContext): Machine => {
    const late = world.machine(`late ${count}`);
    test.after(() => late.repositories.close());
    return late;
  };
  const idle = async (): Promise<void> => {
    for (const { repositories } of [a, b]) await repositories.shared?.idle();
  };
  /** News of another machine may end housekeeping early, which is then done again as its scheduler would. */
  const housekeep = async (machine: Machine, address: RepositoryAddress, options = {}): Promise<void> => {
    for (let tries = 1; ; tries++) {
      await idle();
      const outcome = await machine.repositories.open(address).housekeep(options);
      if (outcome === "done") return;
      assert.ok(outcome === "interrupted" && tries < 10, `housekeeping ended as ${outcome}`);
    }
  };
  const packsOf = async ({ repositories }: Machine, address: RepositoryAddress): Promise<string[]> =>
    (await packsIn(join(repositories.open(address).directory, "objects/pack"))).sort();
  const listed = async (address: RepositoryAddress): Promise<string[]> =>
    (await listedPacks(a.store, address)).map(({ name }) => name).sort();

  /** A commit in a repository that no machine shares. */
  async function commit(text: string, parent?: Oid): Promise<Oid> {
    const { directory } = await world.source.create(diskAddress({ owner, identifier: "source" }));
    const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
    const run = async (args: readonly [string, ...string[]], input = ""): Promise<string> =>
      (await world.git.mustRun(args, { directory, env, input })).toString().trim();
    const blob = await run(["hash-object", "-w", "--stdin"], text);
    const tree = await run(["mktree"], `100644 blob ${blob}\tfile\n`);
    return (await run(["commit-tree", "-m", text, ...(parent ? ["-p", parent] : []), tree])) as Oid;
  }
  const source = (): GitRepository => world.source.open(diskAddress({ owner, identifier: "source" }));

  /** As a push does: objects first, then the refs that name them. */
  async function push({ repositories }: Machine, address: RepositoryAddress, to: Oid, ref = main): Promise<void> {
    const repository = await repositories.create(address);
    const basis = await repositories.basisOf([address]);
    const placed = await repository.copyObjectsFrom(source(), [to]);
    assert.ok(placed);
    try {
      const changes = new RefChanges(basis).naming([placed]).add(repository, [{ ref, to }]);
      await repositories.changeRefs(changes, async () => undefined);
    } catch (error) {
      await placed.takeBack();
      throw error;
    }
  }
  const has = async ({ repositories }: Machine, address: RepositoryAddress, oid: Oid): Promise<boolean> =>
    (await repositories.open(address).missingObjects([oid], { deep: true })).size === 0;
  const refOnDisk = async ({ repositories }: Machine, address: RepositoryAddress): Promise<Oid | undefined> =>
    (await repositories.open(address).refsOnDisk()).refs.get(main)?.oid;

  it("what one machine names another has, with its refs, before it is asked for anything", async () => {
    const address = fresh();
    const one = await commit("one");
    await push(a, address, one);
    await idle();
    assert.ok(existsSync(b.repositories.open(address).directory), "it came in the background");
    const two = await commit("two", one);
    await push(b, address, two);
    assert.equal((await a.repositories.open(address).refs()).refs.get(main)?.oid, two);
    await a.repositories.open(address).bringInLine();
    assert.equal(await refOnDisk(a, address), two);
    assert.ok(await has(a, address, two));
    assert.deepEqual(await packsOf(a, address), await listed(address));
    assert.deepEqual(await packsOf(b, address), await listed(address));
    assert.equal((await listed(address)).length, 2);
    assert.deepEqual(await a.repositories.open(address).fsck(), []);
    assert.equal(await a.repositories.open(address).sizeBytes(), await b.repositories.open(address).sizeBytes());
  });

  it("a machine without any directory has every repository, and forgets none", async (test) => {
    const address = fresh();
    const oid = await commit("kept");
    await push(a, address, oid);
    const late = comesLate(test);
    await late.repositories.alignAll((error) => assert.fail(String(error)));
    assert.ok(await late.repositories.exists(address));
    await late.repositories.create(address);
    assert.equal((await late.repositories.open(address).refs()).refs.get(main)?.oid, oid);
    assert.equal((await readRefs(a.store, address))?.refs.get(main)?.oid, oid, "its rows are there");
    assert.ok(await has(late, address, oid));
    const found: string[] = [];
    for await (const { identifier } of late.repositories.list()) found.push(identifier);
    assert.ok(found.includes(address.identifier));
  });

  it("a pack that no list has counts as here for nothing, and leaves", async () => {
    const address = fresh();
    await push(a, address, await commit("listed"));
    const stray = await commit("stray");
    const repository = b.repositories.open(address);
    const quarantine = await repository.quarantine();
    await copyObjects({ git: world.git, directory: source().directory }, quarantine, [stray], []);
    await quarantine.migrate();
    await quarantine.drop();
    assert.ok(await has(b, address, stray), "git sees it");
    b.repositories.shared?.packs.forget(address.key);
    assert.equal(await has(b, address, stray), false);
    assert.deepEqual(await packsOf(b, address), await listed(address));
  });

  it("what rests on objects that were dropped meanwhile is overtaken, whoever dropped them", async () => {
    const address = fresh();
    const [kept, dropped] = [await commit("stays"), await commit("goes")];
    await push(a, address, kept);
    await push(a, address, dropped, "refs/heads/other" as RefName);
    await a.repositories.open(address).updateRefs([{ ref: "refs/heads/other" as RefName, to: undefined }]);
    const repository = b.repositories.open(address);
    const basis = await b.repositories.basisOf([address]);
    assert.ok(await has(b, address, dropped), "planned: it is here");
    await housekeep(a, address, { cruft: true, graceDays: 0 });
    assert.equal(await has(a, address, dropped), false, "dropped");
    const changes = (plan: typeof basis): RefChanges =>
      new RefChanges(plan).add(repository, [{ ref: "refs/heads/again" as RefName, to: dropped }]);
    await assert.rejects(
      b.repositories.changeRefs(changes(basis), async () => undefined),
      Overtaken,
    );
    assert.equal(await has(b, address, dropped), false, "planned again it is not");
    assert.ok(await has(b, address, kept));
    assert.deepEqual(await packsOf(b, address), await listed(address));
  });

  it("joining packs keeps what came meanwhile, and only the machine that leads joins", async () => {
    const address = fresh();
    let tip: Oid | undefined;
    for (const text of ["1", "2", "3"]) {
      tip = await commit(`joined ${text}`, tip);
      await push(a, address, tip);
    }
    const before = await listed(address);
    assert.equal(before.length, 3);
    await housekeep(b, address);
    assert.deepEqual(await listed(address), before, "b does not lead");
    const other = await commit("beside");
    const { packs } = a.repositories.shared ?? {};
    const table = await a.repositories.open(address).refs();
    await packs?.repack(
      a.repositories.open(address),
      table,
      async (directory) => {
        await push(b, address, other, "refs/heads/beside" as RefName);
        await world.git.mustRun(["repack", "-d", "-n", "--geometric=2", "--quiet"], { directory });
      },
      false,
    );
    const joined = await listed(address);
    assert.equal(joined.length, 2, "one of three, and the one that came");
    assert.ok(await has(b, address, tip as Oid));
    assert.ok(await has(a, address, other));
    assert.deepEqual(await packsOf(a, address), joined);
    assert.deepEqual(await packsOf(b, address), joined);
    await housekeep(b, address);
    assert.deepEqual(await b.repositories.open(address).fsck(), []);
  });

  it("without the pack store what is here is served, and nothing else", async (test) => {
    const address = fresh();
    const oid = await commit("far away");
    await push(a, address, oid);
    const late = comesLate(test);
    await rename(world.packFolder, `${world.packFolder}-away`);
    await mkdir(world.packFolder);
    try {
      assert.ok(await late.repositories.exists(address), "never an unknown repository");
      assert.equal((await late.repositories.open(address).refs()).refs.get(main)?.oid, oid, "never an empty one");
      await assert.rejects(has(late, address, oid), ObjectsUnavailableError);
      assert.ok(await has(a, address, oid));
      await assert.rejects(push(a, address, await commit("refused")), ObjectsUnavailableError);
    } finally {
      await rm(world.packFolder, { recursive: true });
      await rename(`${world.packFolder}-away`, world.packFolder);
    }
    late.repositories.shared?.packs.forget(address.key);
    assert.ok(await has(late, address, oid));
    assert.equal((await a.repositories.open(address).refs()).refs.get(main)?.oid, oid);
  });

  it("a pack that is damaged in the pack store is put there again by a machine that has it", async (test) => {
    const address = fresh();
    const oid = await commit("damaged");
    await push(a, address, oid);
    // One that is still fetching it would notice first.
    await idle();
    const [pack] = await listedPacks(a.store, address);
    assert.ok(pack);
    await writeFile(join(world.packFolder, `${pack.stored}.pack`), "rotten");
    const late = comesLate(test);
    await assert.rejects(has(late, address, oid), ObjectsUnavailableError);
    await idle();
    assert.equal((await packList(a.store, address))?.lost, undefined, "it is there again");
    late.repositories.shared?.packs.forget(address.key);
    assert.ok(await has(late, address, oid));
  });

  it("a pack that nobody has any more leaves the list when its objects have been brought again", async () => {
    const address = fresh();
    const oid = await commit("lost");
    await push(a, address, oid);
    await idle();
    const [pack] = await listedPacks(a.store, address);
    assert.ok(pack);
    for (const machine of [a, b]) {
      await rm(machine.repositories.open(address).directory, { recursive: true });
      machine.repositories.shared?.packs.forget(address.key);
    }
    await rm(join(world.packFolder, `${pack.stored}.pack`));
    const losses: string[] = [];
    for (const { name, repositories } of [a, b])
      repositories.shared?.onLoss(async ({ key }) => void losses.push(`${name} ${key}`));
    await assert.rejects(has(b, address, oid), ObjectsUnavailableError);
    await idle();
    assert.ok(losses.includes(`a ${address.key}`), "the others hear of it");
    assert.ok(losses.includes(`b ${address.key}`), "and so does the one that noticed: it may be the one that hunts");
    const repository = b.repositories.open(address);
    assert.equal(await repository.dropDamagedPacks(), false, "its objects are not here");
    const quarantine = await repository.quarantine({ evenDamaged: true });
    // Another pack with the same objects.
    const more = await commit("and more", oid);
    await copyObjects({ git: world.git, directory: source().directory }, quarantine, [more], [], { alone: true });
    await repository.keep(quarantine);
    await quarantine.drop();
    await repository.dropLost();
    assert.ok(await has(b, address, oid));
    assert.ok(await has(a, address, oid));
    assert.equal((await listed(address)).includes(pack.name), false);
  });

  it("whoever begins to hunt is told of what was lost before, and again when it is there", async () => {
    const address = fresh();
    const oid = await commit("lost before");
    await push(a, address, oid);
    await idle();
    const [pack] = await listedPacks(a.store, address);
    assert.ok(pack);
    const stored = join(world.packFolder, `${pack.stored}.pack`);
    const copy = b.repositories.open(address).directory;
    await rm(copy, { recursive: true });
    // The one that has it is away: nobody puts it there again.
    const aside = `${a.repositories.open(address).directory}-away`;
    await rename(a.repositories.open(address).directory, aside);
    for (const machine of [a, b]) machine.repositories.shared?.packs.forget(address.key);
    await rename(stored, `${stored}-away`);
    await assert.rejects(has(b, address, oid), ObjectsUnavailableError);
    await idle();
    const told: string[] = [];
    b.repositories.shared?.onLoss(async ({ key }) => void (key === address.key && told.push(key)));
    await b.repositories.shared?.tellLosses();
    await idle();
    assert.equal(told.length, 1);
    const hunted = b.repositories.open(address);
    await assert.rejects(hunted.missingObjects([oid]), ObjectsUnavailableError);
    assert.deepEqual([...(await hunted.missingObjects([await commit("never came")], { evenLost: true }))].length, 1);
    await rename(`${stored}-away`, stored);
    await rm(a.repositories.open(address).directory, { recursive: true, force: true });
    await rename(aside, a.repositories.open(address).directory);
    for (const machine of [a, b]) machine.repositories.shared?.packs.forget(address.key);
    assert.ok(await has(a, address, oid));
    await idle();
    assert.equal((await packList(a.store, address))?.lost, undefined);
    assert.equal(told.length, 2, "it need not be looked for any longer");
    assert.ok(await has(b, address, oid));
  });

  it("a directory that is lost here is made again, with the refs of its rows", async () => {
    const address = fresh();
    const oid = await commit("without a directory");
    await push(a, address, oid);
    const repository = a.repositories.open(address);
    await repository.bringInLine();
    assert.equal(await refOnDisk(a, address), oid);
    await rm(repository.directory, { recursive: true });
    repository.context.packs?.forget(address.key);
    await repository.bringInLine();
    assert.equal(await refOnDisk(a, address), oid);
  });

  it("a copy here that rots is fetched again", async () => {
    const address = fresh();
    const oid = await commit("rots");
    await push(a, address, oid);
    const repository = a.repositories.open(address);
    const [name] = await packsOf(a, address);
    const file = join(repository.directory, "objects/pack", `${name}.pack`);
    const { size } = await import("node:fs").then(({ statSync }) => statSync(file));
    await rm(file);
    await writeFile(file, Buffer.alloc(size));
    assert.ok((await repository.fsck()).length > 0);
    assert.equal(await repository.dropDamagedPacks(), true);
    assert.deepEqual(await repository.fsck(), []);
  });

  it("data that was pushed before its event on one machine is claimed on another", async () => {
    const address = fresh("prs");
    const eventId = "2".repeat(64) as EventId;
    const tip = await commit("unclaimed");
    const repository = await a.repositories.create(address);
    const quarantine = await repository.quarantine();
    await copyObjects({ git: world.git, directory: source().directory }, quarantine, [tip], []);
    const data = await repository.keepUnclaimed(quarantine, eventId, tip);
    await quarantine.drop();
    await a.store.transact(async (tx) => {
      assert.ok(await a.repositories.noteUnclaimed(tx, address, data));
    });
    const other = b.repositories.open(address);
    assert.deepEqual(
      (await other.unclaimed()).map(({ eventId: id, tip: at, bytes }) => [id, at, bytes]),
      [[eventId, tip, data.bytes]],
    );
    assert.ok((await other.fetchableRefs()).refs.has(`refs/nostr/${eventId}` as RefName));
    const [folder] = await other.unclaimedObjects(new Set([tip]));
    assert.equal(
      (await readdir(join(folder ?? "", "pack"))).some((name) => name.endsWith(".pack")),
      true,
    );
    assert.equal(await b.repositories.removeIfEmpty(address), false, "somebody's data is in it");
    assert.equal(await has(b, address, tip), false, "it counts as here for nothing");
    const placed = await other.claim(eventId, tip);
    assert.ok(placed);
    await b.store.transact(async (tx) => {
      assert.ok(await placed.list(tx));
      await b.repositories.shared?.packs.unclaimed.forget(tx, address, eventId);
    });
    placed.listed();
    assert.ok(await has(a, address, tip));
    assert.deepEqual(await repository.unclaimed(), []);
  });

  it("what one machine removes goes on the others, and one that is made again is another one", async () => {
    const address = fresh();
    await push(a, address, await commit("removed"));
    await idle();
    const before = await b.repositories.basisOf([address]);
    assert.equal(await a.repositories.delete(address, async () => false), false, "it is wanted");
    assert.ok(await a.repositories.delete(address));
    await idle();
    assert.equal(await b.repositories.exists(address), false);
    assert.equal(existsSync(b.repositories.open(address).directory), false);
    assert.equal((await listedPacks(a.store, address)).length, 0);
    await a.repositories.create(address);
    const repository = b.repositories.open(address);
    assert.equal((await repository.refs()).refs.size, 0);
    const stale = new RefChanges(before).add(repository, [{ ref: main, to: undefined }]);
    await assert.rejects(
      b.repositories.changeRefs(stale, async () => undefined),
      Overtaken,
    );
    await idle();
    assert.ok(await b.repositories.removeIfEmpty(address));
    await idle();
    assert.equal(existsSync(a.repositories.open(address).directory), false);
  });

  it("one of more refs than a change of the log may hold is removed in steps", async () => {
    const address = fresh();
    const to = await commit("many refs");
    await push(a, address, to);
    await a.store.transact(async (tx) => {
      const refs = Array.from({ length: 4_500 }, (_, n) => ({
        ref: `refs/heads/many-${n}` as RefName,
        value: { oid: to, peeled: undefined },
      }));
      await changeRefs(tx, address, refs, main);
    });
    assert.equal(await a.repositories.delete(address, async () => false), false);
    assert.equal((await readRefs(a.store, address))?.refs.size, 4_501);
    let asked = 0;
    await a.repositories.delete(address, async () => ++asked > 0);
    assert.ok(asked >= 4, "it is asked for each step");
    assert.equal(await readRefs(a.store, address), undefined);
    assert.equal(await b.repositories.exists(address), false);
  });

  it("one that is made anew in the other format is so on every machine", async () => {
    const address = fresh();
    await a.repositories.create(address);
    await b.repositories.open(address).ready();
    await a.store.transact(async (tx) => setCatalogueRow(tx, { ...newRepositoryRow(address, 0), format: "sha256" }));
    assert.ok(await b.repositories.remakeInFormat(address));
    assert.equal((await a.repositories.open(address).refs()).format, "sha256");
    const repository = a.repositories.open(address);
    await repository.ready();
    const format = await world.git.mustRun(["rev-parse", "--show-object-format"], { directory: repository.directory });
    assert.equal(format.toString().trim(), "sha256");
    assert.equal(await a.repositories.remakeInFormat(address), false);
  });
});

describe("work that nobody waits for", () => {
  it("is begun whenever it comes, also in the moment in which the work before it ends", async () => {
    for (let turns = 0; turns < 20; turns++) {
      const followers = new PackFollowers();
      for (const key of ["one", "two"]) followers.add(key, async () => undefined);
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      let isDone = false;
      followers.add("three", async () => {
        isDone = true;
      });
      await followers.idle();
      assert.ok(isDone, `after ${turns} turns`);
    }
  });
});
