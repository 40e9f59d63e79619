// What a change of the archive rules does to repositories that are here.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type ListEntry, repositoryList } from "../catalogue/bans-and-lists.js";
import { catalogueRow, type RepositoryStatus } from "../catalogue/repositories.js";
import { waitingAnnouncement } from "../catalogue/waiting.js";
import { isUnderReview, reviewArchived } from "./archive-review.js";
import { announcement, elsewhere, keyOf, nameOf, noArchive, sync, World } from "./testing/world.js";
import { applyChange } from "./verdict.js";

const name = nameOf("bob", "x");
const bobs: ListEntry = { type: "author", pubkey: keyOf("bob") };
const byKey = { ...noArchive, whitelist: repositoryList([bobs]) };
const byService = { ...noArchive, serviceHosts: new Set(["other.example"]) };

/** Bob's repository elsewhere, mirrored by his key, in the status wanted. */
async function mirrored(status: RepositoryStatus): Promise<World> {
  const world = new World({ archive: byKey });
  await world.send(elsewhere("bob", "x"), sync);
  if (status === "waiting" || status === "soft") await world.setStatus(name, status);
  else await world.release(name, status);
  return world;
}

async function review(world: World): Promise<string> {
  const row = await catalogueRow(world.store, name);
  assert.ok(row && isUnderReview(row));
  const found = await reviewArchived(world.store, row, world.settings, world.now);
  for (const change of found?.verdict.changes ?? []) await applyChange(world.store, change, world.now);
  return found?.verdict.action ?? "unchanged";
}

test("what a change of rules does, by the status it finds", async () => {
  for (const [before, rules, action, after] of [
    ["archived", byKey, "unchanged", "archived"],
    ["archived", noArchive, "leave", "leaving"],
    ["waiting", byKey, "unchanged", "waiting"],
    ["waiting", noArchive, "lapse", undefined],
    ["soft", noArchive, "lapse", undefined],
    ["leaving", noArchive, "unchanged", "leaving"],
    ["leaving", byKey, "store", "archived"],
    ["leaving", byService, "store", "archived"],
  ] as const) {
    const world = await mirrored(before);
    world.archive = rules;
    const what = `${before} under ${rules === noArchive ? "no rule" : rules === byKey ? "the same rule" : "another rule"}`;
    assert.equal(await review(world), action, what);
    assert.equal((await catalogueRow(world.store, name))?.status, after, what);
    if (action === "lapse") assert.equal(await waitingAnnouncement(world.store, name), undefined, what);
  }
});

test("when another rule covers it, the servers that are asked are that rule's", async () => {
  for (const status of ["archived", "waiting"] as const) {
    const world = new World({ archive: { all: true } });
    const clone = ["clone", "https://third.example:8443/y.git"];
    await world.send(elsewhere("bob", "x", [clone]), sync);
    if (status === "archived") await world.release(name, status);
    for (const [host, urls] of [
      ["other.example", ["https://other.example/x.git"]],
      ["third.example", ["https://third.example:8443/y.git"]],
      ["third.example:8443", ["https://third.example:8443/y.git"]],
    ] as const) {
      world.archive = { ...noArchive, serviceHosts: new Set([host]) };
      await review(world);
      const row = await catalogueRow(world.store, name);
      assert.deepEqual([row?.status, row?.archive?.cloneUrls], [status, urls]);
    }
    world.archive = { ...noArchive, serviceHosts: new Set(["third.example:9000"]) };
    assert.equal(await review(world), status === "archived" ? "leave" : "lapse", "another port is another service");
  }
});

test("a repository on the blacklist is not taken back, and one that dropped us may be mirrored instead", async () => {
  const banned = await mirrored("leaving");
  banned.lists = { ...banned.lists, repositoryBlacklist: repositoryList([bobs]) };
  assert.equal(await review(banned), "unchanged");
  const dropped = new World();
  await dropped.send(announcement("bob", "x"));
  await dropped.release(name);
  await dropped.send(elsewhere("bob", "x", [], dropped.now + 1));
  assert.equal((await catalogueRow(dropped.store, name))?.status, "leaving");
  dropped.archive = byKey;
  assert.equal(await review(dropped), "store");
  assert.equal((await catalogueRow(dropped.store, name))?.status, "archived");
});

test("a mirror that lists us without being on the whitelist ends with its entry; once on the whitelist it is served", async () => {
  const world = new World({ archive: byKey, lists: { repositoryWhitelist: repositoryList([]) } });
  const others = repositoryList([{ type: "author", pubkey: keyOf("alice") }]);
  world.lists = { ...world.lists, repositoryWhitelist: others };
  await world.send(announcement("bob", "x"));
  await world.release(name, "archived");
  world.archive = noArchive;
  assert.equal(await review(world), "leave");
  world.lists = { ...world.lists, repositoryWhitelist: repositoryList([bobs]) };
  assert.equal(await review(world), "store");
  const row = await catalogueRow(world.store, name);
  assert.deepEqual([row?.status, row?.archive], ["served", null]);
});

test("served and deleted repositories are not under review", async () => {
  const world = new World();
  await world.send(announcement("bob", "x"));
  await world.release(name);
  const row = await catalogueRow(world.store, name);
  assert.ok(row && !isUnderReview(row));
  assert.ok(!isUnderReview({ ...row, status: "deleted", archive: { cloneUrls: [] } }));
});
