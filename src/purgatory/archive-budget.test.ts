import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf } from "../admission/testing/world.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { newRepositoryRow, type RepositoryStatus, setCatalogueRow } from "../catalogue/repositories.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import { ArchiveBudget, archiveUse } from "./archive-budget.js";

function put(store: NaiveStore, identifier: string, status: RepositoryStatus, isArchive: boolean): void {
  const row = newRepositoryRow(nameOf("bob", identifier), 1, isArchive ? { cloneUrls: [] } : null);
  setCatalogueRow(store, { ...row, status, counters: { pushes: 0, bytes: 100, pullRequestBytes: 10 } });
}

test("mirrors count with all they hold, leaving ones too, and others do not", async () => {
  const store = new NaiveStore();
  put(store, "mirror", "archived", true);
  put(store, "going", "leaving", true);
  put(store, "waits", "waiting", true);
  put(store, "own", "served", false);
  assert.deepEqual(await archiveUse(store), { repositories: 1, bytes: 330 });
});

test("what arrives is counted at once, what went is noticed within a minute, and the limit may change", async () => {
  const store = new NaiveStore();
  const clock = new ManualClock();
  let maxBytes = 1_000;
  const budget = new ArchiveBudget(store, clock, () => maxBytes);
  put(store, "mirror", "archived", true);
  assert.equal(await budget.leftBytes(), 890);
  budget.took(400);
  assert.equal(await budget.leftBytes(), 490);
  budget.took(600);
  assert.equal(await budget.leftBytes(), 0, "never less than nothing");
  clock.advance(60_000);
  assert.equal(await budget.leftBytes(), 890, "the catalogue is the truth");
  maxBytes = 110;
  assert.equal(await budget.leftBytes(), 0);
});
