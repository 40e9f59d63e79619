import assert from "node:assert/strict";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { EngineStore } from "../engine/engine.js";
import type { Store, TableName } from "../port.js";
import { DatabaseFiles } from "./database.js";
import { openLmdbStore } from "./open.js";
import { metaNumber, setMeta } from "./rows.js";
import { formatVersion } from "./upgrade.js";

const owner = "ab".repeat(32);
const event = "cd".repeat(32);
const hint = { kind: "pull-request", phase: "waiting", created_at: 1, bytes: 2 };
const placeholder = { id: event, repository: `30617:${owner}:x`, ip: "192.0.2.1", bytes: 1, entered: 1, expires: 2 };
const record = { owner, identifier: "x", packs: 1 };
const many = 1_203;

/** As version 0.1 wrote it. */
async function writeFormat2(folder: string): Promise<void> {
  const store = await openLmdbStore(folder);
  await store.transact(async (tx) => {
    for (let n = 0; n < many; n++) {
      tx.setRow("meta", `prs-bytes:${owner}:n${n}`, { owner, identifier: `n${n}`, bytes: n });
    }
    tx.setRow("meta", `housekeeping:main:${owner}:x`, { ...record, area: "main" });
    tx.setRow("meta", `housekeeping:prs:${owner}:x`, { ...record, area: "prs" });
    tx.setRow("meta", "repair:after", `main:${owner}:x`);
    tx.setRow("purgatory", `p:${owner}:x%3Ay:${event}`, hint);
    tx.setRow("purgatory", `g:${event}:main:${owner}:x`, { ...placeholder, area: "main" });
    tx.setRow("purgatory", `g:${event}:prs:${owner}:x`, { ...placeholder, area: "prs" });
  });
  await store.close();
  const database = new DatabaseFiles(folder).open();
  await database.write(() => setMeta(database, "version", 2));
  await database.close();
}

async function allIn(store: Store, table: TableName): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for await (const [key, value] of store.rows(table)) found[key] = value;
  return found;
}

async function inFolder(story: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-upgrade-"));
  try {
    await story(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The copy is a store of its own, under another name. */
async function checkCopy(folder: string): Promise<void> {
  const place = join(folder, "went-back");
  mkdirSync(place);
  copyFileSync(join(folder, "events-of-format-2.mdb"), join(place, "events-1.mdb"));
  const database = new DatabaseFiles(place, true).open();
  assert.equal(metaNumber(database, "version"), 2);
  await database.close();
  const store = await openLmdbStore(place, { readOnly: true });
  assert.equal(Object.keys(await allIn(store, "meta")).length, many + 3);
  assert.deepEqual(await allIn(store, "catalogue"), {});
  await store.close();
}

async function checkFormat3(store: Store): Promise<void> {
  assert.deepEqual(await allIn(store, "purgatory"), {
    [`r:prs:${owner}:x%3Ay:pull-request:${event}`]: hint,
    [`g:${event}:${owner}:x`]: placeholder,
    [`g:${event}:prs:${owner}:x`]: { ...placeholder, repository: `prs:${owner}:x` },
  });
  const meta = await allIn(store, "meta");
  assert.deepEqual(Object.keys(meta).sort(), [
    `housekeeping:${owner}:x`,
    `housekeeping:prs:${owner}:x`,
    "repair:after",
  ]);
  const rows = await allIn(store, "catalogue");
  assert.equal(Object.keys(rows).length, many);
  const { since, ...row } = rows[`prs:${owner}:n7`] as { since: number };
  assert.ok(since > 0);
  assert.deepEqual(row, {
    address: `prs:${owner}:n7`,
    owner,
    identifier: "n7",
    area: "prs",
    status: "served",
    mark: null,
    governing: null,
    partial: null,
    archive: null,
    counters: { pushes: 0, bytes: 7, pullRequestBytes: 0 },
  });
}

test("a store of format 2 is brought to format 3 at start, says so, and once only", async () => {
  await inFolder(async (folder) => {
    await writeFormat2(folder);
    const said: string[] = [];
    const store = await openLmdbStore(folder, { tell: (sentence) => said.push(sentence) });
    await checkFormat3(store);
    await store.close();
    assert.match(
      said.join("\n"),
      /format 2: bringing it to format 3\n1207 rows of repositories were moved\n.*format 3 now/,
    );
    assert.match(said[0] ?? "", /events-of-format-2\.mdb is a copy of the store as it is now: delete it when/);
    await checkCopy(folder);
    const again = await openLmdbStore(folder, { tell: () => assert.fail("it was brought up to date before") });
    await again.close();
  });
});

test("cut short after any of its steps, the next start ends it", async () => {
  for (const steps of [0, 1, 2, 3, 4, 5]) {
    await inFolder(async (folder) => {
      await writeFormat2(folder);
      let done = 0;
      const transact = EngineStore.prototype.transact;
      EngineStore.prototype.transact = function cutShort(work) {
        if (done++ >= steps) throw new Error("cut short");
        return transact.call(this, work) as ReturnType<typeof transact<never>>;
      };
      try {
        await assert.rejects(openLmdbStore(folder), /cut short/);
      } finally {
        EngineStore.prototype.transact = transact;
      }
      const database = new DatabaseFiles(folder).open();
      assert.equal(metaNumber(database, "version"), 2);
      await database.close();
      const store = await openLmdbStore(folder);
      await checkFormat3(store);
      await store.close();
      await checkCopy(folder);
    });
  }
});

test("a copy that an earlier way back left is replaced", async () => {
  await inFolder(async (folder) => {
    await writeFormat2(folder);
    writeFileSync(join(folder, "events-of-format-2.mdb"), "of another time");
    await (await openLmdbStore(folder)).close();
    await checkCopy(folder);
  });
});

test("without room for the copy nothing is changed, and the refusal says how much is needed", async () => {
  await inFolder(async (folder) => {
    await writeFormat2(folder);
    const little = openLmdbStore(folder, { freeBytes: async () => 5 * 2 ** 20, reserveBytes: 2 ** 20 * 100 });
    await assert.rejects(little, (error: Error) => {
      assert.equal(error.name, "StoreRefusal");
      assert.match(error.message, /format 2 .* format 3: that needs 10\d MiB, and the disk has 5 MiB free\. Make room/);
      return true;
    });
    assert.ok(!existsSync(join(folder, "events-of-format-2.mdb")));
    const store = await openLmdbStore(folder);
    await checkFormat3(store);
    await store.close();
  });
});

test("a store of a later format is refused with both formats and what to do, and not changed", async () => {
  await inFolder(async (folder) => {
    await (await openLmdbStore(folder)).close();
    const setVersion = async (version: number): Promise<void> => {
      const database = new DatabaseFiles(folder).open();
      await database.write(() => setMeta(database, "version", version));
      await database.close();
    };
    await setVersion(formatVersion + 1);
    for (const readOnly of [false, true]) {
      await assert.rejects(openLmdbStore(folder, { readOnly }), {
        name: "StoreRefusal",
        message: new RegExp(`has format ${formatVersion + 1}; this program reads format ${formatVersion} .*: install`),
      });
    }
    await setVersion(formatVersion);
    await (await openLmdbStore(folder)).close();
  });
});
