import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { Pubkey } from "../nostr/event.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { catalogueRows, newRepositoryRow, repositoryKey, setCatalogueRow } from "./repositories.js";

const owner = (index: number): Pubkey => (index % 7).toString(16).repeat(64) as Pubkey;

test("a walk over the catalogue tells each repository once, in order, and lets others have their turn", async (context) => {
  const store = createMemoryStore({ clock: new ManualClock(0) });
  context.after(() => store.close());
  const names = Array.from({ length: 1_000 }, (_none, index) => ({ owner: owner(index), identifier: `r${index}` }));
  await store.transact(async (tx) => {
    for (const name of names) setCatalogueRow(tx, newRepositoryRow(name, 0));
  });
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const found: string[] = [];
  for await (const row of catalogueRows(store)) found.push(repositoryKey(row));
  isOver = true;
  assert.deepEqual(found, names.map(repositoryKey).sort());
  assert.ok(turns >= 4, `${turns} turns in a thousand rows`);

  const middle = found[500] ?? "";
  const rest: string[] = [];
  for await (const row of catalogueRows(store, undefined, middle)) rest.push(repositoryKey(row));
  assert.deepEqual(rest, found.slice(501));
  const own: string[] = [];
  for await (const row of catalogueRows(store, owner(3))) own.push(repositoryKey(row));
  assert.deepEqual(
    own,
    found.filter((key) => key.startsWith(owner(3))),
  );
});
