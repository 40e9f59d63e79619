// A link to a relay: a ping every 30 s, and its end after 60 s without a frame (event-sync.md, "Connections").

import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { RelayClient } from "../../src/net/relay-client.js";

const times = { syncPingIntervalSecs: 30, syncSilentLinkSecs: 60, sendMaxBytes: 1_000_000 };

async function linked(context: TestContext) {
  // Answers no ping by itself.
  const relay = new WebSocketServer({ host: "127.0.0.1", port: 0, autoPong: false });
  await once(relay, "listening");
  const accepted = once(relay, "connection") as Promise<[WebSocket]>;
  const socket = new WebSocket(`ws://127.0.0.1:${(relay.address() as AddressInfo).port}`);
  await once(socket, "open");
  const [theirs] = await accepted;
  const clock = new ManualClock();
  let endedMs: number | undefined;
  let heard: () => void = () => undefined;
  const link = new RelayClient(socket, clock, times, {
    message: () => heard(),
    bytes: () => undefined,
    closed: () => {
      endedMs = clock.monotonicMs();
    },
  });
  context.after(() => {
    link.close();
    socket.terminate();
    theirs.terminate();
    relay.close();
  });
  const hear = async (): Promise<void> => {
    const come = new Promise<void>((resolve) => {
      heard = resolve;
    });
    theirs.send('["NOTICE","here"]');
    await come;
  };
  return { clock, socket, theirs, hear, endedMs: () => endedMs };
}

test("a relay that says nothing is given up a minute after its last frame, not at the next ping", async (context) => {
  const { clock, hear, endedMs } = await linked(context);
  clock.advance(1_000);
  await hear();
  clock.advance(59_999);
  assert.equal(endedMs(), undefined);
  clock.advance(1);
  assert.equal(endedMs(), 61_000);
});

test("a relay that speaks now and then keeps its link, with a ping every half minute", async (context) => {
  const { clock, theirs, hear, endedMs } = await linked(context);
  let pings = 0;
  theirs.on("ping", () => pings++);
  for (let at = 0; at < 10; at++) {
    clock.advance(50_000);
    await hear();
  }
  assert.equal(endedMs(), undefined);
  const expected = Math.floor(500 / 30);
  while (pings < expected) await once(theirs, "ping");
  assert.equal(pings, expected);
});

test("a relay whose frames wait because this process stood still is not silent, and is if it says nothing after that", async (context) => {
  const { clock, endedMs } = await linked(context);
  clock.advance(1_000);
  clock.standStill(80_000);
  assert.equal(endedMs(), undefined);
  clock.advance(59_999);
  assert.equal(endedMs(), undefined);
  clock.advance(1);
  assert.equal(endedMs(), 141_000);
});

test("threat 36: a relay that sends pings and reads none of the answers is given up at the bound of what is unsent", async (context) => {
  const { theirs, socket, endedMs } = await linked(context);
  theirs.pause();
  const payload = Buffer.alloc(125, "p");
  let most = 0;
  for (let sent = 0; endedMs() === undefined; sent += 1_000) {
    assert.ok(sent < 1_000_000, "125 MB of pings were answered");
    for (let ping = 0; ping < 1_000 && theirs.readyState === theirs.OPEN; ping++) theirs.ping(payload);
    await new Promise(setImmediate);
    most = Math.max(most, socket.bufferedAmount);
  }
  assert.ok(most <= times.sendMaxBytes + 2 ** 20, `${most} bytes were held`);
});
