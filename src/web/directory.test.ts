import assert from "node:assert/strict";
import { test } from "node:test";
import { newRepositoryRow, type RepositoryStatus, setCatalogueRow } from "../catalogue/repositories.js";
import { type EventId, kinds, type Pubkey, type Tag, type VerifiedEvent } from "../nostr/event.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { Store } from "../store/port.js";
import { Directory } from "./directory.js";
import { cardChoiceIn, cardsOf, sortEntries } from "./repository-cards.js";

const key = (digit: string): Pubkey => digit.repeat(64) as Pubkey;
const now = 1_000_000;

let made = 0;
function event(pubkey: Pubkey, kind: number, tags: readonly Tag[], created_at: number): VerifiedEvent {
  const id = (++made).toString(16).padStart(64, "0") as EventId;
  const body = { id, pubkey, created_at, kind, tags, content: "", sig: "0".repeat(128) };
  return { ...body, raw: JSON.stringify(body) } as unknown as VerifiedEvent;
}

interface Made {
  readonly status?: RepositoryStatus;
  readonly bytes?: number;
  readonly pushedAt?: number;
  readonly tags?: readonly Tag[];
}

const host = (store: Store, owner: Pubkey, identifier: string, given: Made = {}) =>
  store.transact(async (tx) => {
    const { status = "served", bytes = 1, pushedAt, tags = [] } = given;
    await tx.put(event(owner, kinds.announcement, [["d", identifier], ...tags], 100 + made));
    const row = newRepositoryRow({ owner, identifier }, 1);
    const mark = pushedAt === undefined ? null : { created_at: pushedAt, id: "1".repeat(64) as EventId };
    setCatalogueRow(tx, { ...row, status, mark, counters: { ...row.counters, bytes } });
  });

test("the directory lists what is served, in the order that is asked for, and follows what happens", async () => {
  const store = createMemoryStore();
  await host(store, key("a"), "lamp", {
    bytes: 30,
    pushedAt: 500,
    tags: [
      ["name", "Lamp"],
      ["t", "light"],
    ],
  });
  await host(store, key("b"), "boat", {
    bytes: 10,
    pushedAt: 900,
    tags: [
      ["t", "light"],
      ["t", "sea"],
    ],
  });
  await host(store, key("c"), "future", { bytes: 20, pushedAt: now * 10 });
  for (const status of ["waiting", "soft", "deleted"] as const) await host(store, key("d"), `no-${status}`, { status });
  const directory = new Directory(store);
  const titles = async (sort: "activity" | "name" | "size") =>
    sortEntries(await directory.all(), sort, now).map(({ title }) => title);
  assert.deepEqual(await titles("name"), ["boat", "future", "Lamp"]);
  assert.deepEqual(await titles("size"), ["Lamp", "future", "boat"]);
  assert.deepEqual(await titles("activity"), ["future", "boat", "Lamp"]);
  assert.equal(await directory.all(), await directory.all(), "one list until something changes");

  // Who signs for the far future is as new as what happens now, not newer.
  const issue = event(
    key("e"),
    kinds.issue,
    [
      ["a", `30617:${key("a")}:lamp`],
      ["subject", "Dark"],
    ],
    now,
  );
  await store.transact((tx) => tx.put(issue));
  assert.deepEqual((await titles("activity")).slice(0, 2), ["future", "Lamp"]);
  const lamp = (await directory.all()).find(({ title }) => title === "Lamp");
  assert.deepEqual([lamp?.talk?.title, lamp?.talk?.at], ["Dark", now]);

  await host(store, key("d"), "no-waiting", { status: "served", tags: [["name", "Released"]] });
  assert.ok((await titles("name")).includes("Released"));
  await host(store, key("b"), "boat", { status: "deleted" });
  assert.ok(!(await titles("name")).includes("boat"));
  await store.transact((tx) => tx.remove(issue.id, "deletion"));
  assert.equal((await directory.all()).find(({ title }) => title === "Lamp")?.talk, undefined);
  const renamed = event(
    key("a"),
    kinds.announcement,
    [
      ["d", "lamp"],
      ["name", "Lantern"],
    ],
    300,
  );
  await store.transact((tx) => tx.put(renamed));
  assert.ok((await titles("name")).includes("Lantern"));
  directory.close();
});

test("cards come in pages, by topic, whatever an address asks for", async () => {
  const store = createMemoryStore();
  for (let at = 0; at < 60; at++)
    await host(store, key("a"), `r${at}`, { pushedAt: at, tags: [["t", at % 2 ? "odd" : "even"]] });
  const directory = new Directory(store);
  const cards = (query: string) => cardsOf(store, directory, cardChoiceIn(new URLSearchParams(query)), now);
  const first = await cards("");
  assert.deepEqual([first.list.length, first.pages, first.total, first.choice.sort], [24, 3, 60, "activity"]);
  assert.deepEqual([(await cards("page=3")).list.length, (await cards("page=99")).choice.page], [12, 3]);
  assert.deepEqual((await cards("sort=nonsense&page=-1")).choice, first.choice);
  const odd = await cards("topic=odd&sort=name");
  assert.deepEqual([odd.total, odd.list[0]?.title], [30, "r1"]);
  assert.deepEqual(odd.topics, [
    ["even", 30],
    ["odd", 30],
  ]);
  directory.close();
});
