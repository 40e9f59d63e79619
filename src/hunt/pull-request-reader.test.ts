import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfRepository, keyOf, makeEvent, nameOf, oid, sync, World } from "../admission/testing/world.js";
import { putWaiting, removeWaiting, waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import type { TableReader } from "../store/port.js";
import { PullRequestReader } from "./pull-request-reader.js";

const address = addressOfRepository("alice", "popular");
const prefix = waitingKeys.repositoryKind(nameOf("alice", "popular"), "pull-request");

test("of many pull requests that wait only those that came or changed are read at the next look", async () => {
  const world = new World();
  await world.host("alice", "popular");
  const send = async (tip: string) => {
    const event = makeEvent(keyOf("bob"), 1618, [
      ["a", address],
      ["c", tip],
      ["clone", "https://b.test/x.git"],
    ]);
    await world.send(event, sync);
    return event.id;
  };
  const ids = [];
  for (let n = 0; n < 20; n++) ids.push(await send(oid(`tip ${n}`)));
  // It can only expire: there is no need to look at it twice either.
  await send("--upload-pack=evil");
  let reads = 0;
  const counting: TableReader = {
    row: (table, key) => {
      reads++;
      return world.store.row(table, key);
    },
    rows: (table, range) => world.store.rows(table, range),
  };
  const reader = new PullRequestReader();
  const look = async (): Promise<[number, number, number]> => {
    reads = 0;
    const found = await reader.under(counting, prefix, 1_000);
    return [found.length, found.filter(({ phase }) => phase === "soft").length, reads];
  };
  assert.deepEqual(await look(), [20, 0, 21]);
  assert.deepEqual(await look(), [20, 0, 0]);
  await send(oid("one more"));
  assert.deepEqual(await look(), [21, 0, 1]);
  const entry = await waitingEntry(world.store, ids[0]!);
  await putWaiting(world.store, { ...entry!, phase: "soft" });
  await removeWaiting(world.store, ids[1]!);
  assert.deepEqual(await look(), [20, 1, 1]);
});
