import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { systemClock } from "../base/clock.js";
import { isLargeFileId, type LargeFileId, setLargeFile, setUnclaimedFile } from "../catalogue/large-files.js";
import { forgetPacks, listedPacks, packList } from "../catalogue/packs.js";
import { newRepositoryRow, setCatalogueRow } from "../catalogue/repositories.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import { RefChanges } from "./change-refs.js";
import { cleanPackStore } from "./pack-cleaning.js";
import { shareDirectories } from "./pack-copies.js";
import { copyObjects } from "./quarantine.js";
import { Repositories } from "./repositories.js";
import { packsIn } from "./repository-files.js";
import { storedFileName } from "./shared-files.js";
import { type Machine, type Machines, startMachines } from "./testing/machines.js";

const owner = "1".repeat(64) as Pubkey;
const main = "refs/heads/main" as RefName;
const dayMs = 86_400_000;

describe("what stays in the pack store", () => {
  /** The files in it are as old as the test; the clock is moved instead. */
  let aheadMs = 0;
  const clock = { ...systemClock, nowMs: () => Date.now() + aheadMs };
  let world: Machines;
  let a: Machine;
  let count = 0;
  before(async () => {
    world = await startMachines(clock);
    a = world.machine("a");
  });
  after(() => world.close());

  const source = () => world.source.open(diskAddress({ owner, identifier: "source" }));
  async function commit(text: string): Promise<Oid> {
    const { directory } = await world.source.create(source().address);
    const env = { GIT_AUTHOR_DATE: "1700000000 +0000", GIT_COMMITTER_DATE: "1700000000 +0000" };
    const run = async (args: readonly [string, ...string[]], input = ""): Promise<string> =>
      (await world.git.mustRun(args, { directory, env, input })).toString().trim();
    const tree = await run(["mktree"], `100644 blob ${await run(["hash-object", "-w", "--stdin"], text)}\tfile\n`);
    return (await run(["commit-tree", "-m", text, tree])) as Oid;
  }
  async function pushed(text: string): Promise<RepositoryAddress> {
    const address = diskAddress({ owner, identifier: `r${count++}` });
    const repository = await a.repositories.create(address);
    const to = await commit(text);
    const placed = await repository.copyObjectsFrom(source(), [to]);
    assert.ok(placed);
    await a.repositories.changeRefs(
      new RefChanges().naming([placed]).add(repository, [{ ref: main, to }]),
      async () => undefined,
    );
    return address;
  }
  const clean = () => cleanPackStore({ packs: world.packs, store: a.store, clock }, new AbortController().signal);
  const isStored = (stored: string): boolean => existsSync(join(world.packFolder, `${stored}.pack`));
  const folderOf = (address: RepositoryAddress): string => join(world.packFolder, address.storeFolder);

  it("is what is listed; what was never listed goes after a day, what left a list a day after that", async () => {
    const address = await pushed("listed");
    const [listed] = await listedPacks(a.store, address);
    assert.ok(listed);
    const repository = a.repositories.open(address);
    const quarantine = await repository.quarantine();
    await copyObjects({ git: world.git, directory: source().directory }, quarantine, [await commit("orphan")], []);
    const placed = await repository.putIntoPlace(quarantine);
    await placed.takeBack();
    assert.equal((await packsIn(folderOf(address))).length, 2);
    assert.equal((await clean()).files, 0, "it may be about to be listed");
    aheadMs += dayMs + 60_000;
    await assert.rejects(
      a.store.transact(async (tx) => {
        if (!(await placed.list(tx))) throw new Error("too old to be listed");
      }),
      /too old/,
    );
    assert.ok((await clean()).files >= 2);
    assert.equal((await packsIn(folderOf(address))).length, 1);
    assert.ok(isStored(listed.stored));
    await quarantine.drop();
    await a.repositories.delete(address);
    assert.equal((await clean()).files, 0, "another machine may be fetching it");
    const release = await a.repositories.shared?.hold();
    aheadMs += dayMs - 120_000;
    assert.equal((await clean()).files, 0);
    aheadMs += 121_000;
    await release?.();
    assert.ok((await clean()).files >= 2);
    assert.equal(existsSync(folderOf(address)), false);
  });

  it("is what a backup that runs may still read", async () => {
    const address = await pushed("held");
    const [listed] = await listedPacks(a.store, address);
    assert.ok(listed);
    const release = await a.repositories.shared?.hold();
    await a.repositories.delete(address);
    aheadMs += dayMs - 1_000;
    await clean();
    assert.ok(isStored(listed.stored));
    await release?.();
    aheadMs += 2_000;
    await clean();
    assert.equal(isStored(listed.stored), false);
  });

  it("is not what is being removed: a push that brings the same pack again is not lost with it", async () => {
    const address = await pushed("first");
    const repository = a.repositories.open(address);
    const quarantine = await repository.quarantine();
    await copyObjects({ git: world.git, directory: source().directory }, quarantine, [await commit("again")], []);
    const early = await repository.putIntoPlace(quarantine);
    await early.takeBack();
    aheadMs += dayMs + 60_000;
    assert.ok((await clean()).files > 0);
    const late = await repository.putIntoPlace(quarantine);
    const isListed = () => a.store.transact((tx) => late.list(tx));
    assert.equal(await isListed(), false, "it is marked as going");
    await late.takeBack();
    aheadMs += 3 * 3_600_000;
    const now = new Date(clock.nowMs());
    for (const name of await readdir(folderOf(address))) await utimes(join(folderOf(address), name), now, now);
    await clean();
    const last = await repository.putIntoPlace(quarantine);
    assert.equal(await a.store.transact((tx) => last.list(tx)), true);
    last.listed();
    await quarantine.drop();
  });

  it("is a large file as long as a row names it", async () => {
    const address = await pushed("with files");
    const { files } = a.repositories.shared?.packs ?? {};
    const oids = ["a", "b", "c"].map((digit) => digit.repeat(64)).filter(isLargeFileId) as LargeFileId[];
    const [here, aside, orphan] = oids as [LargeFileId, LargeFileId, LargeFileId];
    for (const oid of oids) await files?.put(oid, join(world.packFolder, "holdfast-cluster.json"));
    const row = { size: 1, isHere: true, isNamed: true, since: 0 };
    await a.store.transact(async (tx) => {
      await setLargeFile(tx, address, here, row);
      setUnclaimedFile(tx, { ...address, area: "main", oid: aside, bytes: 1, ip: "::1", entered: 0, expires: 0 });
    });
    aheadMs += dayMs + 60_000;
    await clean();
    const isThere = (oid: LargeFileId): boolean => existsSync(join(world.packFolder, storedFileName(oid)));
    assert.deepEqual([here, aside, orphan].map(isThere), [true, true, false]);
  });

  it("gets what a server that joins has, and gives it back to one that leaves", async () => {
    const store = createMemoryStore({ clock });
    const gitDataPath = join(world.folder, "joining");
    const alone = new Repositories({ gitDataPath, git: world.git, clock, store });
    const address = diskAddress({ owner, identifier: "joins" });
    const repository = await alone.create(address);
    const to = await commit("joins");
    await repository.copyObjectsFrom(source(), [to]);
    await repository.updateRefs([{ ref: main, to }]);
    const quarantine = await repository.quarantine();
    const [eventId, tip] = ["3".repeat(64) as EventId, await commit("waits for its event")];
    await copyObjects({ git: world.git, directory: source().directory }, quarantine, [tip], []);
    await repository.keepUnclaimed(quarantine, eventId, tip);
    await quarantine.drop();
    await store.transact(async (tx) => setCatalogueRow(tx, newRepositoryRow(address, 0)));
    const told: number[] = [];
    const parts = { gitDataPath, git: world.git, packs: world.packs, store, clock };
    assert.equal(await shareDirectories(parts, (done) => told.push(done)), 1);
    assert.deepEqual(told, [1]);
    // Done again after an interruption.
    await shareDirectories(parts, () => undefined);
    assert.equal((await packList(store, address))?.format, "sha1");
    const moved = join(world.folder, "elsewhere");
    await mkdir(moved);
    const { sharing } = await import("./share-packs.js");
    const share = sharing({ packs: world.packs, store, clock, leads: () => false });
    const there = new Repositories({ gitDataPath: moved, git: world.git, clock, store, share });
    assert.equal((await there.open(address).missingObjects([to], { deep: true })).size, 0);
    assert.deepEqual(
      (await there.open(address).unclaimed()).map((data) => data.tip),
      [tip],
    );
    await rm(moved, { recursive: true });
    there.shared?.packs.forget(address.key);
    assert.equal(await there.shared?.bringAllHere(() => undefined), 1);
    await there.close();
    await forgetPacks(store);
    const left = new Repositories({ gitDataPath: moved, git: world.git, clock, store });
    assert.equal((await left.open(address).missingObjects([to], { deep: true })).size, 0);
    assert.deepEqual(
      (await left.open(address).unclaimed()).map((data) => data.tip),
      [tip],
    );
  });

  it("is enough for a backup of a moment after which packs were joined and repositories removed", async () => {
    const [kept, gone] = [await pushed("kept by the backup"), await pushed("gone since")];
    const release = await a.repositories.shared?.hold();
    const staged = a.repositories.beginSnapshot();
    assert.ok(staged);
    const copy = createMemoryStore({ clock });
    await copy.transact(async (tx) => {
      for (const table of ["packs", "refs"] as const) {
        for await (const [key, value] of a.store.rows(table)) tx.setRow(table, key, value);
      }
    });
    await a.repositories.delete(gone);
    await rm(a.repositories.open(kept).directory, { recursive: true });
    a.repositories.shared?.packs.forget(kept.key);
    await staged.stageAll(copy, () => undefined, new AbortController().signal);
    a.repositories.endSnapshot();
    await release?.();
    for (const address of [kept, gone]) {
      const directory = address.directoryUnder(staged.folder);
      assert.equal((await packsIn(join(directory, "objects/pack"))).length, 1, address.identifier);
      assert.match(await readFile(join(directory, "packed-refs"), "utf8"), /refs\/heads\/main/);
      const restored = join(world.folder, `restored-${address.identifier}`);
      await cp(directory, restored, { recursive: true });
      await world.git.mustRun(["fsck", "--strict"], { directory: restored });
    }
    assert.ok((await readdir(staged.folder)).length > 0);
    await rm(staged.folder, { recursive: true });
  });
});
