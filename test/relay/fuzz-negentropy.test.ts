// Threat 26: a session of the relay fed with negentropy messages that are random, or were good before they were
// damaged. Every one gets one answer, nothing is left behind, and a good peer is served afterwards.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { NegentropyClient, NegentropyServer } from "../../src/nostr/negentropy/reconcile.js";
import type { TimedIds } from "../../src/nostr/negentropy/records.js";
import { NegentropyRecords } from "../../src/nostr/negentropy/records.js";
import { relayLimits } from "../../src/relay/limits.js";
import { eventOf } from "../../src/store/testing/events.js";
import { Random } from "../../src/store/testing/random.js";
import { runs } from "../fuzz/runs.js";
import { startSession, type TestSession } from "../harness/relay-session.js";

const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000);
const badMessages = runs(20_000);
const frameBytes = 5_000;
const limits = { ...relayLimits(defaultConfig()), negentropyMaxFrameBytes: frameBytes };
const shared = 24;
const onlyHere = 8;
const onlyThere = 8;

const answersOf = ({ sent }: TestSession): number => (sent.get("NEG-MSG") ?? 0) + (sent.get("NEG-ERR") ?? 0);

function receive({ session }: TestSession, ...frame: unknown[]): void {
  session.receive(Buffer.from(JSON.stringify(frame)), false);
}

async function answered(started: TestSession, count: number): Promise<void> {
  while (answersOf(started) < count) await turn();
}

function timedIds(events: readonly { readonly created_at: number; readonly id: string }[]): TimedIds {
  const sorted = [...events].sort((a, b) => a.created_at - b.created_at || (a.id < b.id ? -1 : 1));
  return {
    length: sorted.length,
    times: Float64Array.from(sorted, (event) => event.created_at),
    ids: Buffer.from(sorted.map((event) => event.id).join(""), "hex"),
  };
}

/** Everything a client says in a dialogue with a server that has other events. */
function goodMessages(client: TimedIds, server: TimedIds): Buffer[] {
  const asking = new NegentropyClient(new NegentropyRecords(client));
  const answering = new NegentropyServer(new NegentropyRecords(server), { frameBytes });
  const messages: Buffer[] = [];
  for (let message: Uint8Array | undefined = asking.initiate(); message; ) {
    messages.push(Buffer.from(message));
    const answer = answering.reconcile(message);
    assert.ok(answer.ok);
    messages.push(Buffer.from(answer.message));
    const step = asking.reconcile(answer.message);
    assert.ok(step.ok);
    message = step.message;
  }
  return messages;
}

function damaged(random: Random, good: Buffer): Buffer {
  const at = random.below(good.length);
  switch (random.below(4)) {
    case 0:
      return good.subarray(0, at);
    case 1:
      return Buffer.concat([good.subarray(0, at), good.subarray(random.below(good.length))]);
    case 2:
      return Buffer.concat([good, good.subarray(1, at + 1)]);
    default: {
      const copy = Buffer.from(good);
      for (let flips = 1 + random.below(3); flips > 0; flips--) copy[random.below(copy.length)] = random.below(256);
      return copy;
    }
  }
}

function randomBytes(random: Random): Buffer {
  const bytes = Buffer.from(Array.from({ length: random.below(80) }, () => random.below(256)));
  if (bytes.length > 0 && random.chance(0.8)) bytes[0] = 0x61;
  return bytes;
}

test(`threat 26: random and damaged negentropy messages to one session, each answered (seed ${seed})`, {
  timeout: 900_000,
}, async (t) => {
  const open = new Set<string>();
  const started = await startSession(limits, (text) => {
    for (const [, seat] of text.matchAll(/\["NEG-ERR","(n\d+)"/g)) open.delete(String(seat));
  });
  t.after(() => started.close());
  const { store, records, faults, outbox, sent } = started;
  const events = Array.from({ length: shared + onlyHere + onlyThere }, (_, index) =>
    eventOf({ author: index % 7, at: 1_700_000_000 + (index % 50), content: String(index) }),
  );
  const here = events.slice(0, shared + onlyHere);
  const there = [...events.slice(0, shared), ...events.slice(shared + onlyHere)];
  for (const event of here) await store.transact((tx) => tx.put(event));
  const good = goodMessages(timedIds(there), timedIds(here));
  const random = new Random(seed);
  const opening = good[0]?.toString("hex");
  const seats = Array.from({ length: limits.negentropyMaxSessionsPerConnection }, (_, seat) => `n${seat}`);
  let asked = 0;
  let bad = 0;
  while (bad < badMessages) {
    for (const seat of seats) {
      bad++;
      const message = (bad % 2 === 0 ? randomBytes(random) : damaged(random, random.pick(good))).toString("hex");
      // An error ends a reconciliation: it is opened again, now and then with the bad bytes themselves.
      if (open.has(seat)) receive(started, "NEG-MSG", seat, message);
      else if (random.chance(0.2)) receive(started, "NEG-OPEN", seat, {}, message);
      else {
        bad--;
        receive(started, "NEG-OPEN", seat, {}, opening);
      }
      open.add(seat);
      asked++;
    }
    await answered(started, asked);
    await outbox.drained();
  }
  assert.equal(answersOf(started), asked, "one answer each");
  assert.ok((sent.get("NEG-ERR") ?? 0) > badMessages / 10);
  assert.ok((sent.get("NEG-MSG") ?? 0) > badMessages / 10);
  assert.deepEqual(faults, []);
  for (const seat of seats) receive(started, "NEG-CLOSE", seat);
  assert.equal(records.held, 0);

  const client = new NegentropyClient(new NegentropyRecords(timedIds(there)));
  const found = { have: 0, need: 0 };
  let message: Uint8Array | undefined = client.initiate();
  for (let round = 0; message; round++) {
    const hex = Buffer.from(message).toString("hex");
    if (round === 0) receive(started, "NEG-OPEN", "good", {}, hex);
    else receive(started, "NEG-MSG", "good", hex);
    await answered(started, ++asked);
    await outbox.drained();
    const answer = /\["NEG-MSG","good","([0-9a-f]+)"\]$/.exec(started.last())?.[1];
    assert.ok(answer);
    assert.ok(answer.length <= 2 * frameBytes);
    const step = client.reconcile(Buffer.from(answer, "hex"));
    assert.ok(step.ok);
    found.have += step.have.length;
    found.need += step.need.length;
    message = step.message;
  }
  assert.deepEqual(found, { have: onlyThere, need: onlyHere });
});
