import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ofTag } from "../engine/row.js";
import type { Store } from "../port.js";
import { eventOf } from "../testing/events.js";
import { AbsentTerms } from "./absent-terms.js";
import { openDatabase } from "./database.js";
import { openLmdbStore } from "./open.js";
import { metaNumber, tagKeyOf, termKeyOf } from "./rows.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-absent-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const eventUnder = (value: string, at = 1_000) => eventOf({ at, content: value, tags: [["e", value]] });

async function putUnder(store: Store, values: readonly string[]): Promise<void> {
  await store.transact(async (tx) => {
    for (const value of values) await tx.put(eventUnder(value));
  });
}

const values = (name: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${name}-${index}`);

async function countUnder(store: Store, asked: readonly string[]): Promise<number> {
  let rows = 0;
  for await (const page of store.query([{ tags: new Map([["e", asked]]) }])) rows += page.length;
  return rows;
}

test("a tag's key is the same, whether its term is written out or not", () => {
  for (const value of ["", "a", "ü😀", "f".repeat(64)]) {
    assert.deepEqual(tagKeyOf("e", value, 77), termKeyOf(ofTag("e", value), 77));
  }
});

test("tags that nobody has used are known when the disk was looked at, and no tag that is used is ever among them", async () => {
  const path = join(folder, "known");
  const store = await openLmdbStore(path, { reserveBytes: 0, indexAtRows: 1 });
  await store.transact(async (tx) => {
    for (const value of values("indexed", 1_200)) await tx.put(eventUnder(value));
    // More entries under one tag than are read before the rest is passed over.
    for (let at = 0; at < 100; at++) await tx.put(eventUnder("busy", at));
  });
  await store.compact();
  await store.close();

  const database = openDatabase(join(path, "events-2.mdb"));
  const absent = new AbsentTerms({
    database: () => database,
    seed: metaNumber(database, "seed") as number,
    inMemory: () => [ofTag("e", "in-memory")],
  });
  const isAbsent = (value: string): boolean => absent.hasTag("e", value);
  assert.equal(isAbsent("first"), false, "nothing is known before all of the disk was looked at");
  absent.add(ofTag("e", "came-meanwhile"));
  while (!isAbsent("first")) {
    assert.equal(isAbsent("came-meanwhile"), false);
    await nextTurn();
  }
  absent.add(ofTag("e", "came-later"));
  const used = [...values("indexed", 1_200), "busy", "in-memory", "came-meanwhile", "came-later"];
  assert.deepEqual(used.filter(isAbsent), []);
  const unused = values("unused", 10_000);
  assert.ok(unused.filter(isAbsent).length > 9_900, "nearly all that are not used");
  assert.equal(absent.hasTag("p", "busy"), true, "another letter is another tag");
  await absent.close();
  await database.close();
});

test("a store that knows which tags are absent finds everything that is stored before, meanwhile and later", async () => {
  const store = await openLmdbStore(join(folder, "finds"), { reserveBytes: 0, indexAtRows: 50, rememberTagsAfter: 1 });
  const asked = values("v", 600);
  assert.equal(await countUnder(store, asked), 0);
  for (let from = 0; from < asked.length; from += 40) {
    await putUnder(store, asked.slice(from, from + 40));
    assert.equal(await countUnder(store, asked), Math.min(from + 40, asked.length));
  }
  await store.compact();
  assert.equal(await countUnder(store, asked), 600);
  assert.equal(await store.count([{ tags: new Map([["e", asked]]) }]), 600);
  const removed = eventUnder(asked[0] as string);
  await store.transact((tx) => tx.remove(removed.id, "expiration"));
  assert.equal(await countUnder(store, asked), 599);
  await putUnder(store, asked.slice(0, 1));
  assert.equal(await countUnder(store, asked), 600);
  await store.close();
});
