// The modelled network: its wires cost what real ones do, and its servers end with the same events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NegentropyClient, NegentropyServer } from "../../src/nostr/negentropy/reconcile.js";
import { NegentropyRecords } from "../../src/nostr/negentropy/records.js";
import { timedIdsOf, twoSides } from "../../src/nostr/negentropy/testing/sets.js";
import { Network, type NetworkSize } from "./network.js";
import { runNetwork } from "./run.js";
import { reconciliation } from "./wire-costs.js";

/** Hex of all messages between two real sides. */
function realBytes(equal: number, different: number): number {
  const { ours, theirs } = twoSides(equal, 0, different, 500_000, 7);
  const client = new NegentropyClient(new NegentropyRecords(timedIdsOf(ours)), { frameBytes: 500_000 });
  const server = new NegentropyServer(new NegentropyRecords(timedIdsOf(theirs)), { frameBytes: 500_000 });
  let bytes = 0;
  for (let message: Uint8Array | undefined = client.initiate(); message; ) {
    const answer = server.reconcile(message);
    assert.ok(answer.ok);
    bytes += 2 * (message.length + answer.message.length);
    const step = client.reconcile(answer.message);
    assert.ok(step.ok);
    message = step.message;
  }
  return bytes;
}

test("a modelled reconciliation costs a real one's bytes within a factor of two", () => {
  for (const equal of [0, 10, 100, 1_000, 10_000]) {
    for (const different of [1, 10, 100, 1_000, 10_000]) {
      const real = realBytes(equal, different);
      const ratio = (reconciliation(equal, different).bytes + 50) / (real + 50);
      assert.ok(ratio > 0.5 && ratio < 2, `${equal} equal, ${different} different: ${ratio.toFixed(2)} of ${real}`);
    }
  }
});

const size: NetworkSize = { seed: 3, servers: 6, repositories: 30, eventsADay: 600, statesADay: 150 };
const minuteMs = 60_000;

async function started(): Promise<Network> {
  const network = new Network(size);
  for (const server of network.servers) server.start();
  await network.runFor(5 * minuteMs);
  assert.equal(network.inStep(), 1);
  return network;
}

test("what is published at one server is at all that carry its repository within seconds", async () => {
  const network = await started();
  network.write();
  await network.runFor(60 * minuteMs);
  network.rest();
  await network.runFor(minuteMs);
  const { events, states } = network.spreads();
  assert.ok(events.count > 5 && states.count > 1, "people wrote");
  assert.deepEqual([events.unfinished, states.unfinished], [0, 0]);
  assert.ok(events.worstSeconds < 5 && states.worstSeconds < 15, "live, and one hunt after the other");
  assert.ok(network.newBytes > 0 && network.neededBytes > network.newBytes);
});

test("what was published on both sides of a cut is everywhere in the hours after it", async () => {
  const network = await started();
  network.wires.partition(new Set(network.servers.slice(0, 2)));
  network.write();
  await network.runFor(60 * minuteMs);
  network.rest();
  const cut = network.spreads();
  assert.ok(cut.events.unfinished + cut.states.unfinished > 0, "something could not pass");
  network.wires.partition(new Set());
  await network.runFor(120 * minuteMs);
  const { events, states } = network.spreads();
  assert.deepEqual([events.unfinished, states.unfinished], [0, 0]);
});

test("the same seed is the same network, to the byte", async () => {
  const once = async () => (await runNetwork({ ...size, servers: 4, repositories: 10 }, () => undefined, true)).phases;
  assert.deepEqual(await once(), await once());
});
