import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { bannedAuthorKey } from "../catalogue/bans-and-lists.js";
import { countRemovedBy, keepRemoved } from "../catalogue/removed-by-ban.js";
import type { IntakeAnswer } from "../intake/intake.js";
import type { NostrEvent } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { refuse } from "../nostr/refusals.js";
import { keyFrom, signedEvent } from "../nostr/testing/signed.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { unban } from "./bans.js";
import type { AdminParts } from "./context.js";

const key = keyFrom("banned by mistake");
const { pubkey } = key;
const place = { table: "bans", key: bannedAuthorKey(pubkey) } as const;
const stored: IntakeAnswer = { ok: true, outcome: "stored", message: "" };
const full = refuse("disk-full", "the server's disk is full: try again later");

/** A store in which the ban of one key has removed the notes "0", "1", … */
async function afterBan(count: number) {
  const store = createMemoryStore({ clock: new ManualClock(1_700_000_000_000) });
  const events = Array.from({ length: count }, (_, number) => signedEvent({ content: String(number) }, key));
  await store.transact(async (tx) => {
    tx.setRow(place.table, place.key, { since: 0, reason: "" });
    keepRemoved(tx, place, events, 1_700_000_000);
  });
  const restore = (answer: ((event: NostrEvent) => IntakeAnswer) | undefined) => {
    const parts = {
      store,
      clock: new ManualClock(1_700_000_000_000),
      rules: { refresh: async () => undefined },
      intake: async () => answer && { submit: async (event: NostrEvent) => answer(event), idle: async () => undefined },
    } as unknown as AdminParts;
    const request = { type: "key", target: npubOf(pubkey), restore: true } as const;
    return unban(parts, { who: "operator", via: "socket" }, request, () => undefined);
  };
  return { restore, kept: () => countRemovedBy(store, place) };
}

test("what could not be stored for the moment stays restorable, and restoring again brings it back", async () => {
  const { restore, kept } = await afterBan(450);
  const some = await restore(({ content }) => (Number(content) % 2 === 0 ? stored : full));
  assert.ok(some.ok);
  assert.deepEqual(some.result.restored, { repositories: [], events: 225, refused: { "disk-full": 225 }, kept: 225 });
  assert.equal(await kept(), 225);
  const rest = await restore(() => stored);
  assert.ok(rest.ok);
  assert.deepEqual(rest.result.restored, { repositories: [], events: 225, refused: {}, kept: 0 });
  assert.equal(await kept(), 0);
});

for (const code of [
  "disk-full",
  "busy",
  "store-failed",
  "shutting-down",
  "no-announcement",
  "author-blocked",
] as const) {
  test(`nothing could be restored (${code}): the answer is a refusal, and everything is kept`, async () => {
    const { restore, kept } = await afterBan(3);
    const answer = await restore(() => refuse(code, "not now"));
    assert.ok(!answer.ok);
    assert.equal(answer.code, "not-possible");
    assert.match(
      answer.message,
      new RegExp(`ban of npub1\\w+ is lifted, but nothing .*\\(3 × ${code}\\).*3 events are kept`),
    );
    assert.equal(await kept(), 3);
  });
}

test("without a usable key nothing is restored: the answer is a refusal, and everything is kept", async () => {
  const { restore, kept } = await afterBan(1);
  const answer = await restore(undefined);
  assert.ok(!answer.ok);
  assert.match(answer.message, /is lifted, but nothing .*the server's key or domain cannot be used.*1 event is kept/);
  assert.equal(await kept(), 1);
});

test("what is refused for good is forgotten, and so is what was here already or waits", async () => {
  const { restore, kept } = await afterBan(4);
  const answers: readonly IntakeAnswer[] = [
    refuse("deleted", "its author has asked for this event to be deleted"),
    refuse("expired", "the event's expiration time has passed"),
    { ok: true, outcome: "duplicate", message: "" },
    { ok: true, outcome: "held", message: "" },
  ];
  const answer = await restore(({ content }) => answers[Number(content)] ?? full);
  assert.ok(answer.ok);
  assert.deepEqual(answer.result.restored, {
    repositories: [],
    events: 2,
    refused: { deleted: 1, expired: 1 },
    kept: 0,
  });
  assert.equal(await kept(), 0);
});
