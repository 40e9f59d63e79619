// Commits at the end of branches and behind tags, by the repositories that have them.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import type { Pubkey } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import { changeRefs, removeRefs, repositoriesWithTip } from "./refs.js";
import type { RepositoryName } from "./repositories.js";

const oid = (text: string | number): Oid => createHash("sha1").update(`${text}`).digest("hex") as Oid;
const owner = "a".repeat(64) as Pubkey;
const one: RepositoryName = { owner, identifier: "one" };
const other: RepositoryName = { owner, identifier: "other" };
const head = "refs/heads/main" as RefName;

function scene() {
  const store = new NaiveStore();
  const set = (name: RepositoryName, ref: string, to: Oid | undefined, peeled?: Oid) =>
    changeRefs(store, name, [{ ref: ref as RefName, value: to && { oid: to, peeled } }], head);
  const has = async (id: Oid): Promise<string> =>
    (await repositoriesWithTip(store, id, 10)).map(({ identifier }) => identifier).join();
  const rows = async (): Promise<number> => {
    let count = 0;
    for await (const _row of store.rows("refs")) count++;
    return count;
  };
  return { store, set, has, rows };
}

test("a commit is found by every repository that has it on a branch, a tag, or behind an annotated tag", async () => {
  const { set, has } = scene();
  await set(one, "refs/heads/main", oid(1));
  await set(other, "refs/tags/v1", oid("tag"), oid(1));
  assert.equal(await has(oid(1)), "one,other");
  assert.equal(await has(oid("tag")), "other");
  assert.equal(await has(oid(2)), "");
});

test("refs of pull requests, and what lies under /prs/, are no place of a commit", async () => {
  const { set, has } = scene();
  await set(one, `refs/nostr/${"1".repeat(64)}`, oid(1));
  await set({ ...one, area: "prs" }, "refs/heads/main", oid(1));
  assert.equal(await has(oid(1)), "");
});

test("a commit that a branch has left is found until a thousand others have left; one that a tag keeps is always", async () => {
  const { set, has, rows } = scene();
  await set(one, "refs/tags/kept", oid(0));
  for (let at = 0; at <= 1_000; at++) await set(one, "refs/heads/main", oid(at));
  assert.equal(await has(oid(0)), "one");
  assert.equal(await has(oid(1)), "one");
  const before = await rows();
  for (let at = 1_001; at <= 1_003; at++) await set(one, "refs/heads/main", oid(at));
  assert.equal(await has(oid(1)), "");
  assert.equal(await has(oid(0)), "one", "the tag still names it");
  assert.equal(await has(oid(1_003)), "one");
  assert.ok((await rows()) <= before + 2, "rows do not grow with the number of pushes");
});

test("what is removed with the repository leaves no row behind", async () => {
  const { store, set, has, rows } = scene();
  for (const at of [1, 2, 3]) await set(one, "refs/heads/main", oid(at));
  await set(one, "refs/tags/v1", oid("tag"), oid(1));
  await set(one, "refs/heads/side", oid(4));
  await set(one, "refs/heads/side", undefined);
  await set(other, "refs/heads/main", oid(1));
  await removeRefs(store, one);
  assert.equal(await has(oid(1)), "other");
  for (const at of [2, 3, 4, "tag"]) assert.equal(await has(oid(at)), "", String(at));
  await removeRefs(store, other);
  assert.equal(await rows(), 0);
});
