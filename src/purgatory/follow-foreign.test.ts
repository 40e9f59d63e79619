import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfRepository, announcement, client, nameOf } from "../admission/testing/world.js";
import { newEntry } from "../admission/waiting-capacity.js";
import { newRepositoryRow, repositoryKey, setCatalogueRow } from "../catalogue/repositories.js";
import {
  endUnfinished,
  markUnfinished,
  type PlaceholderRow,
  putPlaceholder,
  putWaiting,
  removePlaceholder,
  removeWaiting,
  startPartial,
} from "../catalogue/waiting.js";
import type { EventId } from "../nostr/event.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { Transaction } from "../store/port.js";
import type { Notice } from "./bell.js";
import { followForeign } from "./follow-foreign.js";

test("what another machine holds, releases, hosts and keeps aside rings this one's bell, and its placeholders follow", async () => {
  const store = createMemoryStore();
  const rung: Partial<Notice>[] = [];
  const followed: string[] = [];
  const [clocks, unfinished, counted]: [EventId[], string[], number[]] = [[], [], []];
  let following: Promise<void> | undefined;
  store.onCommit((commit) => {
    following = followForeign(
      store,
      { ...commit, isForeign: true },
      {
        placeholders: { follow: (key, row) => void followed.push(`${key} ${row?.bytes}`) },
        partials: { watch: async (_name, state) => void clocks.push(state) },
        releaser: { unfinishedElsewhere: (key, name) => void unfinished.push(`${key} ${name?.identifier}`) },
        archiveBudget: { countAgain: () => void counted.push(1) },
        bell: { ring: (notice) => void rung.push(notice) },
      },
    );
  });
  const work = async (write: (tx: Transaction) => Promise<unknown>): Promise<Partial<Notice> | undefined> => {
    await store.transact(write);
    await following;
    return rung.splice(0)[0];
  };
  const address = addressOfRepository("alice", "x:y");
  const entry = newEntry({
    kind: "announcement",
    event: announcement("alice", "x:y"),
    source: client(),
    nowSeconds: 1_000,
    deadline: { phase: "waiting", expires: 2_000 },
    repositories: [address],
  });
  const held = await work((tx) => putWaiting(tx, entry));
  assert.deepEqual(held?.names, [nameOf("alice", "x:y")]);
  assert.deepEqual(held?.changes, [{ type: "hold", entry: JSON.parse(JSON.stringify(entry)) }]);
  const released = await work((tx) => removeWaiting(tx, entry.id));
  assert.deepEqual([released?.ids, released?.names, released?.changes], [[entry.id], [], []]);
  const hosted = await work(async (tx) => setCatalogueRow(tx, newRepositoryRow(nameOf("alice", "x:y"), 1_000)));
  assert.deepEqual(
    hosted?.names?.map(({ identifier }) => identifier),
    ["x:y"],
  );
  const id = "ab".repeat(32) as EventId;
  const row: PlaceholderRow = { id, repository: address, ip: "", bytes: 7, entered: 1, expires: 2 };
  const aside = await work(async (tx) => putPlaceholder(tx, row));
  assert.deepEqual(aside?.awaited, [{ id, repository: address }]);
  assert.equal(await work(async (tx) => removePlaceholder(tx, row)), undefined);
  assert.deepEqual(
    followed.map((text) => text.split(" ")[1]),
    ["7", "undefined"],
  );
  assert.equal(await work(async (tx) => tx.setRow("meta", "x", 1)), undefined);
  assert.equal(counted.length, 1, "mirrors are counted again after the catalogue changed");
  const name = nameOf("alice", "x:y");
  await work(async (tx) => {
    await startPartial(tx, name, id, 5);
    markUnfinished(tx, name);
  });
  await work(async (tx) => endUnfinished(tx, name));
  assert.deepEqual(clocks, [id], "whoever leads starts the clock of a push to another machine");
  assert.deepEqual(unfinished, [`${repositoryKey(name)} x:y`, `${repositoryKey(name)} undefined`]);
  await store.close();
});
