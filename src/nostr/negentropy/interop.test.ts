// Against nostr-tools' implementation, which knows only the asking side: when it sits in the server's place it learns
// from our lists of ids instead of answering them, so there the two sides together must know every difference.

import assert from "node:assert/strict";
import { test } from "node:test";
import { nip77 } from "nostr-tools";
import { NegentropyClient, NegentropyServer } from "./reconcile.js";
import { NegentropyRecords } from "./records.js";
import { type Item, numbersFrom, timedIdsOf, twoSides } from "./testing/sets.js";
import { messageFromHex, messageToHex } from "./wire.js";

function storageOf(items: readonly Item[]): nip77.NegentropyStorageVector {
  const storage = new nip77.NegentropyStorageVector();
  for (const { time, id } of items) storage.insert(time, id);
  storage.seal();
  return storage;
}

const recordsOf = (items: readonly Item[]) => new NegentropyRecords(timedIdsOf(items));

function casesFrom(seed: number, count: number) {
  const next = numbersFrom(seed);
  const upTo = (limit: number) => Math.floor(next() * limit);
  return Array.from({ length: count }, (_, index) =>
    twoSides(upTo(1500), upTo(80), upTo(80), [1, 20, 5000][index % 3]!, seed + index),
  );
}

const countOf = (ids: readonly unknown[]): number => ids.length;
const runs = 12;

for (const frameBytes of [4096, 60_000, 500_000]) {
  test(`nostr-tools as client finds exactly the differences to our server with frames of ${frameBytes} bytes`, (context) => {
    const seed = Date.now() >>> 0;
    context.diagnostic(`seed ${seed}`);
    // In one case of the second seed an id is told twice; only what does not fit into a frame can be.
    const known = frameBytes === 4096 ? casesFrom(3794383240, 40) : [];
    for (const sides of [...casesFrom(seed, runs), ...known]) {
      const client = new nip77.Negentropy(storageOf(sides.ours), 10_000_000);
      const server = new NegentropyServer(recordsOf(sides.theirs), { frameBytes });
      const have: string[] = [];
      const need: string[] = [];
      let message: string | null = client.initiate();
      while (message !== null) {
        const answer = server.reconcile(messageFromHex(message)!);
        assert.ok(answer.ok);
        assert.ok(answer.message.length <= frameBytes);
        message = client.reconcile(
          messageToHex(answer.message),
          (id) => have.push(id),
          (id) => need.push(id),
        );
      }
      // What does not fit into a frame is told as one fingerprint over all that follows. That takes in ranges whose
      // differences the client knows already, and nostr-tools then tells them again.
      assert.deepEqual([...new Set(have)].sort(), sides.onlyOurs.sort(), `seed ${seed}`);
      assert.deepEqual([...new Set(need)].sort(), sides.onlyTheirs.sort(), `seed ${seed}`);
      if (frameBytes > 4096)
        assert.deepEqual([have.length, need.length], [sides.onlyOurs, sides.onlyTheirs].map(countOf));
    }
  });

  test(`our client and nostr-tools as its peer together find the differences with frames of ${frameBytes} bytes`, (context) => {
    const seed = (Date.now() + 1) >>> 0;
    context.diagnostic(`seed ${seed}`);
    for (const sides of casesFrom(seed, runs)) {
      const client = new NegentropyClient(recordsOf(sides.ours), { frameBytes });
      const peer = new nip77.Negentropy(storageOf(sides.theirs), 10_000_000);
      const have = new Set<string>();
      const need = new Set<string>();
      for (let message: Uint8Array | undefined = client.initiate(); message; ) {
        assert.ok(message.length <= frameBytes);
        const answer = peer.reconcile(
          messageToHex(message),
          (id) => need.add(id),
          (id) => have.add(id),
        );
        if (answer === null) break;
        const step = client.reconcile(messageFromHex(answer)!);
        assert.ok(step.ok);
        for (const id of step.have) have.add(id);
        for (const id of step.need) need.add(id);
        message = step.message;
      }
      assert.deepEqual([...have].sort(), sides.onlyOurs.sort(), `seed ${seed}`);
      assert.deepEqual([...need].sort(), sides.onlyTheirs.sort(), `seed ${seed}`);
    }
  });
}
