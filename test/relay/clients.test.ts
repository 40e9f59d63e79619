// nostr-tools, a client real programs are made with, against the whole server on LMDB: publishes, subscribes, counts,
// authenticates, reconciles.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { nip77 } from "nostr-tools";
import { finalizeEvent, getPublicKey } from "nostr-tools/pure";
import { Relay, useWebSocketImplementation } from "nostr-tools/relay";
import { WebSocket } from "ws";
import { acceptAll } from "../harness/relay-server.js";
import { startInProcess, type TestServer } from "../harness/server.js";

useWebSocketImplementation(WebSocket);
const secret = Uint8Array.from({ length: 32 }, (_, index) => index + 1);
const pubkey = getPublicKey(secret);
const note = (content: string, tags: string[][] = [], created_at = Math.floor(Date.now() / 1000)) =>
  finalizeEvent({ kind: 1, created_at, tags, content }, secret);

/** The client's own patience is four seconds, which a busy machine may need. */
async function connected(url: string): Promise<Relay> {
  const relay = await Relay.connect(url);
  relay.publishTimeout = 120_000;
  return relay;
}

describe("nostr-tools", { timeout: 900_000 }, () => {
  let server: TestServer;
  let relay: Relay;
  before(async () => {
    server = await startInProcess({ backend: "lmdb", policy: acceptAll });
    relay = await connected(server.url);
  });
  after(async () => {
    relay.close();
    await server.end();
    assert.deepEqual(server.faults, []);
  });

  test("publishes and subscribes, stored and live", async () => {
    const stored = note("stored");
    assert.equal(await relay.publish(stored), "");
    const got: string[] = [];
    const live = note("live");
    await new Promise<void>((resolve) => {
      relay.subscribe([{ authors: [pubkey] }], {
        onevent(event) {
          got.push(event.id);
          if (event.id === live.id) resolve();
        },
        oneose: () => void relay.publish(live),
      });
    });
    assert.deepEqual(got, [stored.id, live.id]);
  });

  test("counts", async () => {
    assert.equal(await relay.count([{ authors: [pubkey] }], {}), 2);
  });

  test("is refused with the reason", async () => {
    const forged = { ...note("x"), content: "y" };
    await assert.rejects(relay.publish(forged), /^Error: invalid: /);
  });

  test("authenticates when it is asked to, for the URL it dialled, and then publishes a protected event", async () => {
    const client = await connected(server.url);
    const event = note("protected", [["-"]]);
    await assert.rejects(client.publish(event), /auth-required: /);
    await client.auth(async (template) => finalizeEvent(template, secret));
    assert.equal(await client.publish(event), "");
    client.close();
  });

  test("reconciles: learns what it lacks and what the relay lacks", async () => {
    const mine = note("only mine", [["t", "neg"]]);
    const theirs = Array.from({ length: 50 }, (_, index) =>
      note(`theirs ${index}`, [["t", "neg"]], 1_700_000_000 + index),
    );
    for (const event of theirs) await relay.publish(event);
    const storage = new nip77.NegentropyStorageVector();
    for (const event of [mine, ...theirs.slice(0, 20)]) storage.insert(event.created_at, event.id);
    storage.seal();
    const have: string[] = [];
    const need: string[] = [];
    await new Promise<void>((resolve, reject) => {
      const sync = new nip77.NegentropySync(
        relay,
        storage,
        { "#t": ["neg"] },
        {
          onhave: (id) => have.push(id),
          onneed: (id) => need.push(id),
          onclose: (reason) => (reason ? reject(new Error(reason)) : resolve()),
        },
      );
      sync.start().catch(reject);
    });
    assert.deepEqual(have, [mine.id]);
    assert.deepEqual(new Set(need), new Set(theirs.slice(20).map((event) => event.id)));
  });
});
