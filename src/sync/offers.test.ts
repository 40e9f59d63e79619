// The end of offers: what intake was given ends before close() does, and nothing more is given.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { IntakeAnswer } from "../intake/intake.js";
import { refuse } from "../nostr/refusals.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { Offer } from "./core/budgets.js";
import { event } from "./core/testing/driver.js";
import { Offers } from "./offers.js";

const offer = (name: string): Offer => ({
  type: "offerToIntake",
  relay: "a.example",
  source: "live",
  layerFour: false,
  event: event(name, 1621, []),
});

/** Offers whose submissions wait until the test answers them. */
function openOffers() {
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  const faults: unknown[] = [];
  const submitted: ((answer: IntakeAnswer) => void)[] = [];
  let noticed = () => {};
  const verdicts: string[] = [];
  const offers = new Offers({
    store,
    clock,
    intake: {
      submit: () =>
        new Promise<IntakeAnswer>((answer) => {
          submitted.push(answer);
          noticed();
        }),
      idle: async () => undefined,
    },
    verdict: (_offer, outcome) => verdicts.push(outcome.type === "refused" ? outcome.code : outcome.type),
    full: () => undefined,
    fault: (error) => faults.push(error),
  });
  const nextSubmission = (): Promise<void> =>
    new Promise((resolve) => {
      noticed = resolve;
    });
  return { clock, store, offers, submitted, verdicts, faults, nextSubmission };
}

/** Everything that can happen without the clock or an answer has happened. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("close() waits for what intake was given", async () => {
  const { offers, submitted, verdicts, faults, nextSubmission } = openOffers();
  const given = nextSubmission();
  offers.add(offer("one"));
  await given;
  let isClosed = false;
  const closing = offers.close().then(() => {
    isClosed = true;
  });
  await settled();
  assert.equal(isClosed, false, "git may still follow the event");
  submitted[0]!({ ok: true, outcome: "stored", message: "" });
  await closing;
  assert.deepEqual([verdicts, faults], [[], []]);
});

test("close() does not wait for the time to try again, and nothing is tried again", async () => {
  const { offers, submitted, faults, nextSubmission } = openOffers();
  const given = nextSubmission();
  offers.add(offer("one"));
  await given;
  submitted[0]!(refuse("busy", "busy"));
  await settled();
  await offers.close();
  assert.deepEqual([submitted.length, faults], [1, []]);
});

test("an offer whose store or intake fails in passing has its verdict all the same", async (context) => {
  const { offers, store, submitted, verdicts, faults, nextSubmission } = openOffers();
  context.mock.method(store, "row", () => Promise.reject(new Error("in passing")), { times: 1 });
  offers.add(offer("one"));
  await settled();
  assert.deepEqual(verdicts, ["store-failed"]);
  const given = nextSubmission();
  offers.add(offer("two"));
  await given;
  submitted[0]!(Promise.reject(new Error("in passing")) as never);
  await settled();
  assert.deepEqual(verdicts, ["store-failed", "store-failed"]);
  assert.equal(faults.length, 2);
  assert.equal(offers.waiting, 0);
});
