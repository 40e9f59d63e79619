// Our own side of a comparison: what it takes is not the relay's silence (event-sync.md, "History": time-outs run from
// sending), all relays share one list of announcements, and both sides are counted.

import assert from "node:assert/strict";
import { it } from "node:test";
import { reconcileStep } from "../../src/nostr/negentropy/reconcile.js";
import type { TimedIds } from "../../src/nostr/negentropy/records.js";
import { NegentropyRecords } from "../../src/nostr/negentropy/records.js";
import { randomItems, timedIdsOf } from "../../src/nostr/negentropy/testing/sets.js";
import type { Store } from "../../src/store/port.js";
import { ownSide } from "../../src/sync/own-server.js";
import { type OwnSide, type ReconcileResult, Reconciliation, type SortedIds } from "../../src/sync/reconciliation.js";
import { PushedClock } from "../harness/sync-clock.js";

const none: TimedIds = { length: 0, times: new Float64Array(), ids: new Uint8Array() };

function sessionWith(own: OwnSide): { session: Reconciliation; happened: string[]; results: ReconcileResult[] } {
  const happened: string[] = [];
  const results: ReconcileResult[] = [];
  const session = new Reconciliation("n1", 10_000, own, {
    send: ([verb]) => void happened.push(String(verb)),
    progress: (ours) => void happened.push(ours ? "ours" : "progress"),
    ended: (result) => {
      results.push(result);
      happened.push("ended");
    },
    fault: () => void happened.push("fault"),
  });
  return { session, happened, results };
}

it("a comparison that took long to read from our own store is not the relay's silence", async () => {
  let read: (records: NegentropyRecords) => void = () => undefined;
  const { session, happened } = sessionWith({
    records: () => new Promise<NegentropyRecords>((resolve) => (read = resolve)),
    sort: async () => ({ missing: [], waiting: [] }),
  });
  const opening = session.open({ kinds: [30617] });
  assert.deepEqual(happened, []);
  read(new NegentropyRecords(none));
  await opening;
  assert.deepEqual(happened, ["NEG-OPEN", "progress"]);
});

it("a store that fails ends the session as our own trouble", async () => {
  const { session, happened, results } = sessionWith({
    records: () => Promise.reject(new Error("the disk is gone")),
    sort: async () => ({ missing: [], waiting: [] }),
  });
  await session.open({ kinds: [30617] });
  assert.deepEqual(happened, ["fault", "ended"]);
  assert.equal(results[0]?.ok === false && results[0].kind, "ours");
});

it("a session says when it looks up what we hold, and how many each side has, with the same fingerprint for the same events", async () => {
  const items = randomItems(300, 50, 7);
  const theirs = new NegentropyRecords(timedIdsOf(items.filter((_, n) => n % 10 !== 0)));
  const ours = new NegentropyRecords(timedIdsOf(items.filter((_, n) => n % 10 !== 5)));
  let sent: Uint8Array | undefined;
  let found: (sorted: SortedIds) => void = () => undefined;
  const happened: string[] = [];
  const results: ReconcileResult[] = [];
  const session = new Reconciliation(
    "n1",
    10_000,
    { records: async () => ours, sort: () => new Promise((resolve) => (found = resolve)) },
    {
      send: (message) => {
        happened.push(String(message[0]));
        sent = message[0] === "NEG-CLOSE" ? undefined : Buffer.from(String(message.at(-1)), "hex");
      },
      progress: (own) => void happened.push(own ? "ours" : "progress"),
      ended: (result) => void results.push(result),
      fault: (error) => assert.fail(String(error)),
    },
  );
  await session.open({ kinds: [30617] });
  while (sent) {
    const step = reconcileStep(theirs, "server", 100_000, sent);
    assert.ok(step.ok);
    session.onMessage(step.message);
  }
  assert.deepEqual(happened.slice(-2), ["NEG-CLOSE", "ours"]);
  // What the relay still says after it has said all changes nothing.
  session.onRefused("closed: too late");
  assert.equal(results.length, 0);
  found({ missing: [], waiting: [] });
  await new Promise(setImmediate);
  const [result] = results;
  assert.ok(result?.ok);
  assert.equal(result.peerMissing.length, 30);
  assert.deepEqual(result.sides, {
    ours: { count: 270, fingerprint: ours.fingerprint(0, 270) },
    theirs: { count: 270, fingerprint: theirs.fingerprint(0, 270) },
    theyLack: 30,
  });
  assert.notEqual(result.sides.ours.fingerprint, result.sides.theirs.fingerprint);
});

it("five hundred relays are compared over one reading of our announcements, and over a new one after a minute", async () => {
  const read: string[] = [];
  const clock = new PushedClock();
  const store = {
    timedIds: async (filter: object) => {
      read.push(JSON.stringify(filter));
      await new Promise(setImmediate);
      return none;
    },
  } as unknown as Store;
  const own = ownSide(store, clock, () => 1000);
  const ask = (): Promise<unknown> => own.records({ kinds: [30617] }, new AbortController().signal);
  await Promise.all(Array.from({ length: 250 }, ask));
  for (let n = 0; n < 250; n++) await ask();
  assert.equal(read.length, 1);
  await own.records({ kinds: [30617], since: 5 }, new AbortController().signal);
  assert.equal(read.length, 2, "another filter is another list");
  await clock.push(61_000);
  await ask();
  assert.equal(read.length, 3);
});

it("a list of announcements that could not be read is read again for the next", async () => {
  let fails = true;
  const store = {
    timedIds: async () => {
      if (fails) throw new Error("not now");
      return none;
    },
  } as unknown as Store;
  const own = ownSide(store, new PushedClock(), () => 1000);
  const ask = (): Promise<NegentropyRecords | undefined> =>
    own.records({ kinds: [30617] }, new AbortController().signal);
  await assert.rejects(ask());
  fails = false;
  assert.equal((await ask())?.length, 0);
});
