import assert from "node:assert/strict";
import { test } from "node:test";
import type { EventId, NostrEvent } from "../nostr/event.js";
import { beginningOfEvent, beginningOfText } from "./event-beginning.js";

const id = "1".repeat(64) as EventId;
const event = (tags: string[][], content: string): NostrEvent => {
  const body = { id, pubkey: "ab".repeat(32), created_at: 12, kind: 1621, tags, content, sig: "2".repeat(128) };
  return { ...body, raw: JSON.stringify(body) } as unknown as NostrEvent;
};

test("the beginning of a text says the same as the event, however it is cut", () => {
  const whole = event([["subject", 'a "] b\\'], ["t", "ü\u2028"], ["e"]], 'line\n"quoted" \\ \u0001 ü 🎈 end');
  for (let length = 0; length <= whole.raw.length; length++) {
    const found = beginningOfText(whole.raw.slice(0, length), id, 1);
    if (!found) continue;
    assert.deepEqual(whole.tags.slice(0, found.tags.length), found.tags);
    assert.ok(whole.content.startsWith(found.content), `${length}: ${found.content}`);
  }
  const { content, tags, pubkey, kind, created_at } = beginningOfText(whole.raw, id, 1) ?? {};
  assert.deepEqual(
    { content, tags, pubkey, kind, created_at },
    { content: whole.content, tags: whole.tags, pubkey: whole.pubkey, kind: 1621, created_at: 12 },
  );
  assert.equal(beginningOfEvent(whole).content, whole.content);
  assert.equal(beginningOfText("{}", id, 1), undefined);
});

test("endless tags and an endless text are looked at in linear time", () => {
  const cost = (length: number): number => {
    const begun = process.cpuUsage();
    for (const text of ['["'.repeat(length), `[${'"\\"'.repeat(length)}`, '["a"],'.repeat(length)])
      beginningOfText(`{"id":"${id}","pubkey":"${"ab".repeat(32)}","created_at":1,"kind":1,"tags":[${text}`, id, 1);
    return process.cpuUsage(begun).user;
  };
  cost(20_000);
  const [small, large] = [cost(50_000), cost(200_000)];
  assert.ok(large < Math.max(small * 12, 200_000), `${small} µs, then ${large} µs for four times as much`);
});
