import assert from "node:assert/strict";
import test from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { DecisionLog, type DecisionRecord, decisionsOn, recordCount } from "./decisions.js";

const idOf = (number: number): EventId => number.toString(16).padStart(64, "0") as EventId;

const record = (number: number, outcome: DecisionRecord["outcome"] = "store"): DecisionRecord => ({
  id: idOf(number),
  pubkey: idOf(7) as string as Pubkey,
  kind: 1,
  at: 1_000,
  source: "client",
  relay: null,
  outcome,
  rule: "related",
  code: null,
  message: "",
  facts: {},
  repositories: [],
});

function world() {
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  const failures: unknown[] = [];
  let writes = 0;
  let isFailing = false;
  const log = new DecisionLog({
    store: {
      transact(work) {
        writes++;
        return isFailing ? Promise.reject(new Error("the disk is full")) : store.transact(work);
      },
    },
    clock,
    failed: (error) => void failures.push(error),
  });
  const fail = (on: boolean): void => {
    isFailing = on;
  };
  return { clock, store, log, failures, fail, writes: () => writes };
}

test("decisions noted together are written together, after a second", async () => {
  const { clock, store, log, writes } = world();
  for (let number = 0; number < 10; number++) log.note(record(number));
  assert.equal(await recordCount(store), 0);
  await clock.advance(1_000);
  await log.written();
  assert.equal(await recordCount(store), 10);
  assert.equal(writes(), 1);
});

test("many decisions are written without waiting for the second, page by page", async () => {
  const { store, log, writes } = world();
  for (let number = 0; number < 200; number++) log.note(record(number));
  await log.written();
  assert.equal(await recordCount(store), 200);
  assert.equal(writes(), 4);
});

test("what cannot be written stays noted, in order, and is written when the store can again", async () => {
  const { store, log, failures, fail } = world();
  fail(true);
  log.note(record(1, "hold"));
  await log.written();
  assert.equal(failures.length, 1);
  fail(false);
  log.note(record(1, "store"));
  await log.written();
  assert.deepEqual(
    (await decisionsOn(store, idOf(1))).map(({ outcome }) => outcome),
    ["store", "hold"],
  );
});
