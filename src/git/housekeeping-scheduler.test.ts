// The background's sense of time, over real repositories and a clock that is driven.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { newRepositoryRow, type RepositoryName, setCatalogueRow } from "../catalogue/repositories.js";
import { Room } from "../intake/testing/room.js";
import type { Pubkey } from "../nostr/event.js";
import type { RefName } from "../nostr/nip34.js";
import { diskAddress } from "./address.js";
import { type HousekeepingReport, HousekeepingScheduler, housekeepingRecord } from "./housekeeping-scheduler.js";

const day = 86_400_000;
const quietMs = 30_000;
const main = "refs/heads/main" as RefName;

describe("housekeeping in the background", { timeout: 120_000 }, () => {
  let room: Room;
  let upkeep: HousekeepingScheduler;
  let ran: HousekeepingReport[];
  let count = 0;

  const open = async (): Promise<void> => {
    ran = [];
    upkeep = new HousekeepingScheduler({
      store: room.store,
      repositories: room.repositories,
      clock: room.clock,
      config: () => ({
        gitCruftGraceDays: 14,
        gitRepackAfterPacks: 3,
        gitCruftIntervalDays: 7,
        gitCruftAfterRepacks: 10,
        gitRepackQuietSecs: quietMs / 1_000,
      }),
      freeBytes: () => 2 ** 40,
      ran: (report) => void ran.push(report),
      failed: (error) => {
        throw error;
      },
    });
    await upkeep.open();
  };

  before(async () => {
    room = await Room.open();
    await open();
  });
  after(async () => {
    await upkeep.close();
    await room.close();
  });

  async function hosted(): Promise<RepositoryName> {
    const name = { owner: "1".repeat(64) as Pubkey, identifier: `kept-${count++}` };
    await room.repositories.create(diskAddress(name));
    await room.store.transact(async (tx) => setCatalogueRow(tx, newRepositoryRow(name, room.now)));
    return name;
  }

  /** One pack more, as a push leaves it. */
  async function pushed(name: RepositoryName): Promise<void> {
    const repository = room.repository(name);
    await repository.duringPush(async () => {
      const to = await room.commit(name, `commit ${count++}`);
      await repository.updateRefs([{ ref: main, to }]);
      await room.git.mustRun(["repack", "-d", "-n", "--quiet"], { directory: repository.directory });
    });
  }

  /** Time passes, and everything it started comes to its end. */
  async function passes(ms: number): Promise<void> {
    room.clock.advance(ms);
    await upkeep.caughtUp();
  }

  const namesRan = (name: RepositoryName): string[] =>
    ran.filter(({ address }) => address.identifier === name.identifier).map(({ kind, result }) => `${kind} ${result}`);

  it("begins when a repository has been quiet, once, and is remembered", async () => {
    const name = await hosted();
    for (let pack = 0; pack < 3; pack++) await pushed(name);
    await passes(quietMs / 2);
    await pushed(name);
    await passes(quietMs * 0.9);
    assert.deepEqual(namesRan(name), [], "not quiet yet");
    await passes(quietMs * 0.2);
    assert.deepEqual(namesRan(name), ["geometric done"]);
    assert.equal((await room.repository(name).packFacts()).packs, 1);
    const record = await housekeepingRecord(room.store, diskAddress(name));
    assert.deepEqual([record?.packs, record?.repacksSinceCruft, record?.hasBitmap], [1, 1, true]);
    await pushed(name);
    await passes(3 * quietMs);
    assert.deepEqual(namesRan(name), ["geometric done"], "one pack more is not enough");
    assert.equal(upkeep.queued, 0);
  });

  it("does not wait for ever for one that is never quiet", async () => {
    const name = await hosted();
    for (let turn = 0; turn < 25; turn++) {
      if (turn < 4) await pushed(name);
      else await room.repository(name).duringPush(async () => undefined);
      await passes(quietMs * 0.9);
    }
    assert.deepEqual(namesRan(name), ["geometric done"]);
  });

  it("comes back to one that gave way", async () => {
    const name = await hosted();
    for (let pack = 0; pack < 3; pack++) await pushed(name);
    const stopped = upkeep.run(diskAddress(name), "geometric", AbortSignal.abort()).catch((error: Error) => error.name);
    assert.equal(await stopped, "AbortError");
    await room.repository(name).duringPush(() => passes(quietMs * 2));
    assert.deepEqual(namesRan(name), ["geometric busy"]);
    await passes(quietMs * 2);
    assert.deepEqual(namesRan(name), ["geometric busy", "geometric done"]);
  });

  it("threat 47: one in which somebody is always at work is done beside them in the end", async () => {
    const name = await hosted();
    for (let pack = 0; pack < 3; pack++) await pushed(name);
    for (let turn = 0; turn < 4; turn++) await room.repository(name).duringPush(() => passes(quietMs * 30));
    assert.deepEqual(namesRan(name), ["geometric busy", "geometric busy", "geometric busy", "geometric done"]);
  });

  it("sorts out garbage after a week, also where nobody has changed anything since, and after a restart", async () => {
    const name = await hosted();
    for (let pack = 0; pack < 3; pack++) await pushed(name);
    await passes(quietMs * 2);
    assert.deepEqual(namesRan(name), ["geometric done"]);
    await upkeep.close();
    await open();
    await passes(quietMs * 2);
    assert.deepEqual(namesRan(name), [], "what was done before the restart is known");
    for (let hours = 0; hours < 7 * 24 + 2; hours++) await passes(day / 24);
    assert.deepEqual(namesRan(name), ["cruft done"]);
  });

  it("forgets a repository that is gone", async () => {
    const name = await hosted();
    for (let pack = 0; pack < 3; pack++) await pushed(name);
    await passes(quietMs * 2);
    assert.ok(await housekeepingRecord(room.store, diskAddress(name)));
    await room.repository(name).duringPush(async () => undefined);
    await room.repositories.delete(diskAddress(name));
    await passes(quietMs * 2);
    assert.equal(await housekeepingRecord(room.store, diskAddress(name)), undefined);
  });
});
