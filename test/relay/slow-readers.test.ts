// Threat 25: peers that take nothing, peers that are gone, and crowds from one address.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { WebSocket } from "ws";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import type { VerifiedEvent } from "../../src/nostr/event.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay, type TestRelay } from "../harness/relay-server.js";

const author = keyOf("author");
const put = (server: TestRelay, event: unknown) => server.store.transact((tx) => tx.put(event as VerifiedEvent));
const bigEvent = (index: number, kilobytes = 100) =>
  sign(author, { created_at: 1_700_000_000 + index, content: String(index).padEnd(kilobytes * 1024, "x") });

/** A WebSocket by hand: it can stop reading, and never answers a ping. */
async function rawSocket(t: TestContext, server: TestRelay): Promise<Socket> {
  const socket = connect(server.port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.write(
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  const [data] = (await once(socket, "data")) as [Buffer];
  assert.match(String(data), /^HTTP\/1\.1 101 /);
  return socket;
}

/** One masked text frame (mask 0). */
function frameOf(text: string): Buffer {
  const payload = Buffer.from(text);
  assert.ok(payload.length < 126);
  return Buffer.concat([Buffer.from([0x81, 0x80 | payload.length, 0, 0, 0, 0]), payload]);
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

describe("threat 25", { timeout: 900_000 }, () => {
  test("a slow reader holds about 1 MiB, not its whole answer, and gets all of it when it reads again", async (t) => {
    const server = await startRelay({}, t);
    for (let index = 0; index < 400; index++) await put(server, bigEvent(index));
    const socket = await rawSocket(t, server);
    let bytes = 0;
    socket.pause();
    socket.write(frameOf('["REQ","s",{"limit":400}]'));
    const other = await RelayClient.connect(server.url);
    for (let round = 0; round < 20; round++) await other.ask("q", { limit: 1 });
    // 400 events are 40 MB: what the kernel takes for a socket was read, and a little more. The other client's answers
    // are two rows each.
    const rowsRead = server.store.rowsRead - 20 * 2;
    assert.ok(rowsRead > 0 && rowsRead < 150, `${rowsRead} rows`);
    socket.on("data", (data: Buffer) => {
      bytes += data.length;
    });
    socket.resume();
    await until(() => bytes > 400 * 100 * 1024);
    assert.deepEqual(server.faults, []);
  });

  test("a client that takes nothing for 60 s is closed, others are not", async (t) => {
    const clock = new ManualClock();
    const server = await startRelay({ clock }, t);
    for (let index = 0; index < 200; index++) await put(server, bigEvent(index));
    const socket = await rawSocket(t, server);
    socket.pause();
    const other = await RelayClient.connect(server.url);
    socket.write(frameOf('["REQ","s",{"limit":200}]'));
    for (let round = 0; round < 20; round++) await other.ask("q", { limit: 1 });
    assert.equal(server.relay.connections, 2);
    const step = async () => {
      clock.advance(10_000);
      await other.ask("q", { limit: 1 });
    };
    for (let seconds = 0; seconds < 60; seconds += 10) await step();
    await step();
    await until(() => server.relay.connections === 1);
    assert.equal((await other.ask("q", { limit: 1 })).end[0], "EOSE");
  });

  test("a client that lets 32 MiB of live events pile up is closed at once", async (t) => {
    const server = await startRelay({ limits: { sendMaxBytes: 4 * 1024 * 1024 } }, t);
    const socket = await rawSocket(t, server);
    socket.pause();
    socket.write(frameOf('["REQ","s",{"limit":0}]'));
    await until(() => server.relay.subscriptions === 1);
    const other = await RelayClient.connect(server.url);
    let sent = 0;
    while (server.relay.connections === 2) {
      await put(server, bigEvent(sent++, 500));
      await turn();
      assert.ok(sent < 100, "never closed");
    }
    assert.equal(server.relay.subscriptions, 0);
    assert.equal((await other.ask("q", { limit: 1 })).end[0], "EOSE");
  });

  test("a half-open socket that answers no ping is closed after the second ping; one that does stays", async (t) => {
    const clock = new ManualClock();
    const server = await startRelay({ clock }, t);
    await rawSocket(t, server);
    const alive = await RelayClient.connect(server.url);
    await until(() => server.relay.connections === 2);
    const pinged = once(alive.socket, "ping");
    clock.advance(30_000);
    await pinged;
    await alive.ask("q", { limit: 0 });
    clock.advance(30_000);
    await until(() => server.relay.connections === 1);
    assert.equal((await alive.ask("q", { limit: 0 })).end[0], "EOSE");
  });

  test("800 sockets from one address are capped, IPv6 by /64, while another address works", async (t) => {
    const server = await startRelay({ abuseThreshold: 10 }, t);
    const from = (ip: string) => ({ headers: { "X-Forwarded-For": ip } });
    let refused = 0;
    const tryFrom = (ip: string) =>
      new Promise<void>((resolve) => {
        const socket = new WebSocket(server.url, from(ip));
        socket.on("open", resolve);
        socket.on("unexpected-response", (request, response) => {
          assert.equal(response.statusCode, 429);
          assert.equal(response.headers["access-control-allow-origin"], "*");
          refused++;
          request.destroy();
          resolve();
        });
        socket.on("error", () => resolve());
      });
    for (let batch = 0; batch < 8; batch++) {
      await Promise.all(Array.from({ length: 100 }, (_, index) => tryFrom(`2001:db8:0:1::${batch}:${index}`)));
    }
    assert.equal(refused, 600);
    assert.equal(server.relay.connections, 200);
    const other = await RelayClient.connect(server.url, from("2001:db8:0:2::1"));
    assert.equal((await other.ask("q", { limit: 1 })).end[0], "EOSE");
    const metrics = await server.registry.metrics();
    assert.match(metrics, /^ngit_websocket_flagged_abusers 1$/m);
    assert.match(metrics, /^ngit_websocket_unique_ips 2$/m);
  });

  test("a client that sends and never reads is not read for ever", async (t) => {
    const server = await startRelay({ limits: { sendPauseBytes: 64 * 1024 } }, t);
    const socket = await rawSocket(t, server);
    socket.pause();
    let accepted = 0;
    const frame = frameOf('["NOBODY KNOWS THIS"]');
    const flood = Buffer.concat(Array.from({ length: 1_000 }, () => frame));
    while (accepted < 5_000 && socket.write(flood)) {
      accepted++;
      await turn();
    }
    assert.ok(accepted < 5_000, "the server went on reading");
  });

  test("rates: a connection's and an address's events are limited, and reconnecting wins nothing", async (t) => {
    const clock = new ManualClock();
    const limits = { eventsPerMinutePerConnection: 10, eventsPerMinutePerIp: 15 };
    const server = await startRelay({ clock, limits }, t);
    const publishMany = async (name: string) => {
      const client = await RelayClient.connect(server.url);
      let accepted = 0;
      for (let index = 0; index < 20; index++) {
        const [, , ok, text] = await client.publish(sign(author, { content: `${name} ${index}` }));
        if (ok) accepted++;
        else assert.match(String(text), /^rate-limited: /);
      }
      await client.close();
      return accepted;
    };
    assert.equal(await publishMany("first"), 10);
    assert.equal(await publishMany("second"), 5);
    clock.advance(20_000);
    assert.equal(await publishMany("third"), 5);
    clock.advance(60_000);
    assert.equal(await publishMany("fourth"), 10);
  });
});

describe("closing", { timeout: 900_000 }, () => {
  test("answers under way go out, then every socket is told and closed with 1001, within the time", async (t) => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const server = await startRelay(
      {
        policy: async () => {
          await gate;
          return { ok: true, action: "store", rule: "test" };
        },
      },
      t,
    );
    const client = await RelayClient.connect(server.url);
    const idle = await rawSocket(t, server);
    const event = sign(author, { content: "in flight" });
    const ok = client.publish(event);
    await client.ask("q", { limit: 0 });
    const closedClient = once(client.socket, "close");
    const closedIdle = once(idle, "close");
    const startedAt = performance.now();
    const closing = server.close(3_000);
    release();
    assert.equal((await ok)[2], true);
    assert.equal((await closedClient)[0], 1001);
    assert.equal(client.heard.at(-1)?.[0], "NOTICE");
    await closing;
    idle.resume();
    await closedIdle;
    assert.ok(performance.now() - startedAt < 20_000);
    await assert.rejects(RelayClient.connect(server.url));
  });
});
