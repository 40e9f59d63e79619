import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addressOfRepository,
  announcement,
  elsewhere,
  keyOf,
  makeEvent,
  nameOf,
  oid,
  state,
  sync,
  World,
} from "../admission/testing/world.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { putWaiting, removeWaiting, waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import { Room } from "../intake/testing/room.js";
import type { Oid } from "../nostr/nip34.js";
import type { TableReader } from "../store/port.js";
import { announcedCloneUrls, PullRequestReader, wantsOf } from "./wants.js";

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

test("copies are looked for where the owner and the maintainers say, an owner who only follows a lead too, invitees not", async () => {
  const world = new World();
  const on = (host: string): readonly string[] => ["clone", `https://${host}.example/x.git`];
  await world.host("alice", "x", [on("alice"), ["M", keyOf("lead")]]);
  await world.send(elsewhere("lead", "x", [on("lead"), ["M", keyOf("lead")], ["m", keyOf("bob")]]));
  await world.send(elsewhere("bob", "x", [on("bob")]));
  const row = await catalogueRow(world.store, nameOf("alice", "x"));
  assert.ok(row);
  const hosts = (await announcedCloneUrls(world.store, row)).map((url) => new URL(url).hostname);
  assert.deepEqual(
    ["alice", "lead", "bob"].filter((name) => hosts.includes(`${name}.example`)),
    ["alice", "lead"],
  );
});

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
