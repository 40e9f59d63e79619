import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfRepository, announcement, keyOf, makeEvent, nameOf, oid, state } from "../admission/testing/world.js";
import type { Oid } from "../nostr/ids.js";
import { Room } from "../purgatory/testing/room.js";
import { PullRequestReader } from "./pull-request-reader.js";
import { wantsOf } from "./wants.js";

test("git is not asked again for tips that were missing when nothing came since, unless a state wants the same", async (context) => {
  const room = await Room.open();
  context.after(() => room.close());
  const name = nameOf("alice", "x");
  await room.send(announcement("alice", "x", [], room.now));
  const tip = await room.commit(name, "one");
  const tags = (c: string) => [["a", addressOfRepository("alice", "x")] as const, ["c", c] as const];
  const here = makeEvent(keyOf("bob"), 1618, tags(tip), room.now);
  const absent = makeEvent(keyOf("bob"), 1618, tags(oid("far")), room.now);
  for (const event of [here, absent]) await room.write(event);
  const pullRequests = new PullRequestReader();
  const wanted = async (...stillMissing: Oid[]): Promise<string[]> => {
    const { store, repositories } = room;
    const wants = await wantsOf({ store, repositories, pullRequests, stillMissing: new Set(stillMissing) }, name);
    return wants.items.map(({ id }) => id).sort();
  };
  assert.deepEqual(await wanted(), [absent.id]);
  assert.deepEqual(await wanted(tip), [here.id, absent.id].sort());
  const both = state(
    "alice",
    "x",
    [
      ["refs/heads/main", tip],
      ["refs/heads/far", oid("far")],
    ],
    room.now,
  );
  await room.write(both);
  assert.deepEqual(await wanted(tip), [absent.id, both.id].sort());
});
