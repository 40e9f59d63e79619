import assert from "node:assert/strict";
import { test } from "node:test";
import { type EventId, kinds, type Pubkey, type Tag, type VerifiedEvent } from "../../nostr/event.js";
import { createMemoryStore } from "../../store/memory/memory-store.js";
import type { Store } from "../../store/port.js";
import { ThreadIndex } from "./thread-index.js";

const [owner, friend, reader, stranger] = ["a", "b", "c", "d"].map((digit) => digit.repeat(64) as Pubkey) as [
  Pubkey,
  Pubkey,
  Pubkey,
  Pubkey,
];
const name = { owner, identifier: "lamp" };
const about: Tag = ["a", `30617:${owner}:lamp`];

let made = 0;
function event(pubkey: Pubkey, kind: number, tags: readonly Tag[], created_at: number, content = ""): VerifiedEvent {
  const id = (++made).toString(16).padStart(64, "0") as EventId;
  const body = { id, pubkey, created_at, kind, tags, content, sig: "0".repeat(128) };
  return { ...body, raw: JSON.stringify(body) } as unknown as VerifiedEvent;
}

const put = (store: Store, ...events: VerifiedEvent[]) =>
  store.transact(async (tx) => {
    for (const one of events) await tx.put(one);
  });

test("an index says the same whether events were there before it or came after", async () => {
  const issue = event(reader, kinds.issue, [about, ["subject", "Dark"], ["t", "bug"]], 10);
  const other = event(stranger, kinds.issue, [about, ["subject", "Bright"]], 11);
  const pull = event(reader, kinds.pullRequest, [about, ["subject", "Mend"], ["c", "1".repeat(40)]], 12);
  const patch = event(reader, kinds.patch, [about, ["t", "root"]], 13, "Subject: [PATCH 1/2] One\n\n");
  const second = event(
    reader,
    kinds.patch,
    [about, ["e", patch.id, "", "reply"], ["commit", "5".repeat(40)]],
    14,
    "Subject: [PATCH 2/2] Two\n\n",
  );
  const events = [
    event(
      owner,
      kinds.announcement,
      [
        ["d", "lamp"],
        ["maintainers", friend],
      ],
      1,
    ),
    issue,
    other,
    pull,
    patch,
    second,
    event(reader, kinds.patch, [about, ["e", second.id, "", "reply"]], 15, "Subject: [PATCH 3/2] Three\n\n"),
    event(reader, kinds.pullRequestUpdate, [about, ["E", pull.id], ["c", "2".repeat(40)]], 20),
    event(stranger, kinds.pullRequestUpdate, [about, ["E", pull.id], ["c", "3".repeat(40)]], 30),
    event(friend, 1632, [["e", issue.id, "", "root"]], 40),
    event(stranger, 1630, [["e", issue.id]], 50),
    event(stranger, 1632, [["e", other.id]], 51),
    event(
      friend,
      1985,
      [
        ["e", issue.id],
        ["L", "#t"],
        ["l", "urgent", "#t"],
      ],
      52,
    ),
    event(
      stranger,
      1985,
      [
        ["e", issue.id],
        ["l", "silly", "#t"],
      ],
      53,
    ),
    event(friend, 1630, [["e", issue.id]], 35),
  ];
  const facts = async (index: ThreadIndex) => {
    const threads = await index.of(name);
    return {
      issues: threads.issues.map(({ title, status, labels }) => [title, status, ...labels]),
      proposals: threads.proposals.map(({ title, status, tip }) => [title, status, tip?.[0]]),
      series: threads.continuationsOf(patch.id).length,
    };
  };
  const expected = {
    issues: [
      ["Bright", "closed"],
      ["Dark", "closed", "bug", "urgent"],
    ],
    proposals: [
      ["One", "open", "5"],
      ["Mend", "open", "2"],
    ],
    series: 2,
  };
  const before = createMemoryStore();
  await put(before, ...events);
  const late = new ThreadIndex(before);
  assert.deepEqual(await facts(late), expected);

  const after = createMemoryStore();
  const early = new ThreadIndex(after);
  await put(after, events[0] as VerifiedEvent);
  await early.of(name);
  for (const one of events.slice(1).reverse()) await put(after, one);
  assert.deepEqual(await facts(early), expected);

  // What is taken back counts no longer, and what counted before it does again.
  const closing = events[9] as VerifiedEvent;
  await before.transact((tx) => tx.remove(closing.id, "deletion"));
  assert.deepEqual((await facts(late)).issues[1], ["Dark", "open", "bug", "urgent"]);
  await before.transact((tx) => tx.remove(issue.id, "deletion"));
  assert.deepEqual((await facts(late)).issues, [["Bright", "closed"]]);
  // A maintainer who is one no longer decides nothing.
  await put(after, event(owner, kinds.announcement, [["d", "lamp"]], 60));
  assert.deepEqual((await facts(early)).issues[1], ["Dark", "open", "bug"]);
  late.close();
  early.close();
});

test("an event that comes while an index is built is in it", async () => {
  const store = createMemoryStore();
  await put(store, event(owner, kinds.announcement, [["d", "lamp"]], 1));
  const many = Array.from({ length: 3_000 }, (_, at) =>
    event(reader, kinds.issue, [about, ["subject", `Issue ${at}`]], at),
  );
  await put(store, ...many);
  const index = new ThreadIndex(store);
  const building = index.of(name);
  await put(
    store,
    event(reader, kinds.issue, [about, ["subject", "Late"]], 9_000),
    event(reader, 1632, [["e", many[0]?.id ?? ""]], 9_001),
  );
  const threads = await building;
  const again = await index.of(name);
  assert.equal(again, threads);
  assert.equal(again.issues.length, 3_001);
  assert.equal(again.issues[0]?.title, "Late");
  assert.equal(again.issues.at(-1)?.status, "closed");
  index.close();
});

test("threat 33: ten thousand issues are read once: later looks and new events cost what is new", async () => {
  const store = createMemoryStore();
  await put(store, event(owner, kinds.announcement, [["d", "lamp"]], 1));
  const many = Array.from({ length: 10_000 }, (_, at) =>
    event(reader, kinds.issue, [about, ["subject", `Issue ${at}`]], 100 + at),
  );
  for (let at = 0; at < many.length; at += 1_000) await put(store, ...many.slice(at, at + 1_000));
  await put(store, ...many.slice(0, 500).map(({ id }) => event(owner, 1632, [["e", id]], 20_000)));
  let rows = 0;
  const query: Store["query"] = async function* (filters, options) {
    for await (const page of store.query(filters, options)) {
      rows += page.length;
      yield page;
    }
  };
  const counting = new Proxy(store, {
    get: (target, name) => {
      if (name === "query") return query;
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const index = new ThreadIndex(counting);
  const threads = await index.of(name);
  assert.equal(threads.issues.length, 10_000);
  assert.equal(threads.issues.filter(({ status }) => status === "closed").length, 500);
  assert.equal(rows, 10_500);
  await index.of(name);
  assert.equal(rows, 10_500);
  const fresh = event(reader, kinds.issue, [about, ["subject", "Fresh"]], 30_000);
  await put(store, fresh, event(owner, 1631, [["e", fresh.id]], 30_001));
  assert.deepEqual(
    (await index.of(name)).issues.slice(0, 2).map(({ title, status }) => [title, status]),
    [
      ["Fresh", "done"],
      ["Issue 9999", "open"],
    ],
  );
  assert.ok(rows <= 10_501, `${rows} rows`);
  index.close();
});
