// A REQ sees every matching event once, wherever the line between stored and live falls.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { VerifiedEvent } from "../../src/nostr/event.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay, type TestRelay } from "../harness/relay-server.js";
import { untilSo } from "../harness/server.js";

const author = keyOf("author");
const events = Array.from({ length: 600 }, (_, index) =>
  sign(author, { created_at: 1_700_000_000 + (index % 37), content: String(index) }),
);
const put = (server: TestRelay, event: unknown) => server.store.transact((tx) => tx.put(event as VerifiedEvent));

async function heardAll(client: RelayClient, id: string, count: number): Promise<string[]> {
  await untilSo(`${count} events of ${id}`, () => client.eventsOf(id).length >= count);
  return client.eventsOf(id).map((event) => event.id);
}

describe("exactly once", { timeout: 900_000 }, () => {
  test("subscriptions opened while events are published miss none and repeat none", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    const half = events.length / 2;
    for (const event of events.slice(0, half)) await put(server, event);
    const publishing = (async () => {
      for (const event of events.slice(half)) {
        await put(server, event);
        await turn();
      }
    })();
    const ids = Array.from({ length: 20 }, (_, index) => `s${index}`);
    for (const id of ids) {
      client.send("REQ", id, { authors: [author.pubkey], limit: 5_000 });
      for (let turns = 0; turns < 8; turns++) await turn();
    }
    await publishing;
    for (const id of ids) {
      const heard = await heardAll(client, id, events.length);
      assert.equal(heard.length, events.length, id);
      assert.equal(new Set(heard).size, events.length, id);
    }
  });

  for (const [name, buffered] of [
    ["a buffer that holds them", 1_000],
    ["the feed, when the buffer overflows", 10],
  ] as const) {
    test(`what is published while stored events are sent comes after EOSE, from ${name}`, async (t) => {
      const server = await startRelay({ limits: { maxBufferedLiveEvents: buffered, pageRows: 10 } }, t);
      const client = await RelayClient.connect(server.url);
      for (const event of events.slice(0, 30)) await put(server, event);
      let release = () => {};
      let reached = () => {};
      const held = new Promise<void>((resolve) => {
        reached = resolve;
      });
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      let pages = 0;
      server.store.beforePage = async () => {
        if (++pages === 2) {
          reached();
          await gate;
        }
      };
      const eose = client.next(([verb]) => verb === "EOSE");
      client.send("REQ", "s", { authors: [author.pubkey] });
      await held;
      for (const event of events.slice(30, 300)) await put(server, event);
      const before = client.eventsOf("s").length;
      assert.ok(before <= 10);
      release();
      await eose;
      assert.equal(
        client.heard.findIndex(([verb]) => verb === "EOSE"),
        30,
      );
      const live = (async () => {
        for (const event of events.slice(300, 400)) await put(server, event);
      })();
      const heard = await heardAll(client, "s", 400);
      await live;
      assert.equal(new Set(heard).size, 400);
      assert.equal(heard.length, 400);
      assert.deepEqual(new Set(heard.slice(0, 30)), new Set(events.slice(0, 30).map((event) => event.id)));
    });
  }

  test("a version that is replaced while the old one is being read is not lost", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    const version = (index: number) =>
      sign(author, { kind: 30_618, created_at: 1_700_000_000 + index, tags: [["d", "x"]] });
    await put(server, version(0));
    server.store.beforePage = async () => {
      server.store.beforePage = async () => undefined;
      await put(server, version(1));
    };
    const wanted = version(1).id;
    const seen = client.next(([verb, , event]) => verb === "EVENT" && (event as { id: string }).id === wanted);
    client.send("REQ", "s", { kinds: [30_618] });
    await seen;
  });
});
