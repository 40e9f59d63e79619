import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { eventOf } from "../testing/events.js";
import { DatabaseFiles } from "./database.js";
import { openLmdbStore } from "./open.js";

const databases = (folder: string): string[] =>
  readdirSync(folder)
    .filter((name) => name.endsWith(".mdb") || name.includes(".part"))
    .sort();

test("a crash while compacting costs nothing: half a copy is thrown away, a whole one is used", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-files-"));
  try {
    const store = await openLmdbStore(folder);
    await store.transact((tx) => tx.put(eventOf({})));
    await store.close();
    writeFileSync(join(folder, "events-2.mdb.part"), "half a copy");
    const second = await openLmdbStore(folder);
    assert.equal(await second.count([{}]), 1);
    await second.close();
    assert.deepEqual(databases(folder), ["events-1.mdb"]);

    copyFileSync(join(folder, "events-1.mdb"), join(folder, "events-2.mdb"));
    const third = await openLmdbStore(folder);
    assert.deepEqual(databases(folder), ["events-2.mdb"]);
    assert.equal(await third.count([{}]), 1);
    await third.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("compacting gives space back and leaves one file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-files-"));
  try {
    const store = await openLmdbStore(folder, { indexAtRows: 100 });
    const events = Array.from({ length: 1_000 }, (_, index) => eventOf({ content: `${"x".repeat(2_000)}${index}` }));
    await Promise.all(events.map((event) => store.transact((tx) => tx.put(event))));
    await store.transact(async (tx) => {
      for (const { id } of events.slice(10)) await tx.remove(id, "operator");
    });
    const before = store.stats.bytesOnDisk;
    await store.compact();
    assert.ok(store.stats.bytesOnDisk < before / 2);
    assert.deepEqual(databases(folder), ["events-2.mdb"]);
    assert.equal(await store.count([{}]), 10);
    await store.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a store of another format is not opened", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-files-"));
  try {
    const { setMeta } = await import("./rows.js");
    const database = new DatabaseFiles(folder).open();
    await database.write(() => setMeta(database, "version", 99));
    await database.close();
    await assert.rejects(openLmdbStore(folder), /format 99/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
