import assert from "node:assert/strict";
import { test } from "node:test";
import { announcement, keyOf, makeEvent, nameOf, state } from "../admission/testing/world.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import type { RefName } from "../nostr/nip34.js";
import { Room } from "./testing/room.js";

const main = "refs/heads/main" as RefName;
const days = 86_400;

test("a repository that is announced again while its directory is about to go keeps it", async (context) => {
  const room = await Room.open();
  context.after(() => room.close());
  const name = nameOf("alice", "again");
  await room.send(announcement("alice", "again", [], room.now));
  const { repositories } = room;
  const remove = repositories.delete.bind(repositories);
  let times = 0;
  repositories.delete = async (...args) => {
    if (times++ === 0) await room.send(announcement("alice", "again", [], room.now));
    return remove(...args);
  };
  await room.advance(31 * 60);
  assert.equal(times, 1, "its time was over");
  assert.equal((await catalogueRow(room.store, name))?.status, "waiting");
  assert.equal(await repositories.exists(diskAddress(name)), true);
});

test("a deleted repository that is announced again in its last moment of grace keeps its history", async (context) => {
  const room = await Room.open();
  context.after(() => room.close());
  const name = nameOf("alice", "back");
  const first = announcement("alice", "back", [], room.now);
  await room.send(first);
  const tip = await room.commit(name, "one");
  await room.send(state("alice", "back", [[main, tip]], room.now));
  await room.advance(10);
  await room.send(makeEvent(keyOf("alice"), 5, [["e", first.id]], room.now));
  assert.equal((await catalogueRow(room.store, name))?.status, "deleted");
  const { store } = room;
  const rows = store.rows.bind(store);
  let isBack = false;
  store.rows = async function* (table, range) {
    yield* rows(table, range) as AsyncGenerator<never>;
    if (table !== "catalogue" || isBack) return;
    isBack = true;
    await room.send(announcement("alice", "back", [], room.now));
  };
  await room.advance(room.config.unhostGraceDays * 86_400 + days);
  assert.ok(isBack, "it was looked at");
  assert.ok(await catalogueRow(store, name));
  assert.equal((await room.repository(name).refs()).refs.get(main)?.oid, tip);
});

test("an event that somebody else released in between is told as served", async (context) => {
  const room = await Room.open();
  context.after(() => room.close());
  const name = nameOf("alice", "raced");
  await room.send(announcement("alice", "raced", [], room.now));
  const tip = await room.commit(name, "one");
  const { releaser } = room.purgatory;
  const release = releaser.release.bind(releaser);
  const released: number[] = [];
  releaser.release = async (...args) => {
    // The hunt, or another machine, is a little quicker.
    released.push((await release(...args)).length);
    const late = await release(...args);
    released.push(late.length);
    return late;
  };
  assert.equal(await room.send(state("alice", "raced", [[main, tip]], room.now)), true);
  assert.deepEqual(released, [2, 0]);
});
