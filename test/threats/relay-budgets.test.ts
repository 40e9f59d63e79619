// threats.md rows 35, 36, 38 and 48: what strangers make the relay hold and match, by address and in all.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import type { NostrEvent, VerifiedEvent } from "../../src/nostr/event.js";
import { type Filter, parseFilter } from "../../src/nostr/filter.js";
import { relayLimits } from "../../src/relay/limits.js";
import { SubscriptionIndex } from "../../src/relay/live.js";
import { heldHere, mebibyte, usedHere } from "../harness/held-memory.js";
import { leastCpuMs, loopBoundMs } from "../harness/loop-hold.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay, type TestRelay } from "../harness/relay-server.js";

const author = keyOf("author");
const hex = (index: number): string => index.toString(16).padStart(64, "0");
const put = (server: TestRelay, event: NostrEvent) => server.store.transact((tx) => tx.put(event as VerifiedEvent));

/** A WebSocket by hand: it sends any bytes, and reads only when it is told to. */
async function rawSocket(t: TestContext, server: TestRelay, ip = "192.0.2.1"): Promise<Socket> {
  const socket = connect(server.port, "127.0.0.1");
  t.after(() => socket.destroy());
  socket.on("error", () => undefined);
  socket.write(
    `GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: ${ip}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  await once(socket, "data");
  socket.pause();
  return socket;
}

/** One masked frame (mask 0). */
function frameOf(opcode: number, payload: Buffer): Buffer {
  const { length } = payload;
  const header =
    length < 126
      ? Buffer.from([opcode, 0x80 | length, 0, 0, 0, 0])
      : Buffer.from([opcode, 0x80 | 126, length >> 8, length & 255, 0, 0, 0, 0]);
  return Buffer.concat([header, payload]);
}

const textFrame = (text: string): Buffer => frameOf(0x81, Buffer.from(text));

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn();
}

/** Writes until the server is no longer reading, or has closed; what it took. */
async function flood(socket: Socket, bytes: Buffer, mostBytes: number): Promise<number> {
  let written = 0;
  while (!socket.destroyed && written < mostBytes) {
    written += bytes.length;
    if (socket.write(bytes)) await turn();
    else if (!(await takesMore(socket))) break;
  }
  return socket.bytesWritten - socket.writableLength;
}

/** Whether the socket drained, or the server closed it, before the server has answered others a hundred times. */
async function takesMore(socket: Socket): Promise<boolean> {
  let isOver = false;
  const settle = () => {
    isOver = true;
  };
  socket.once("drain", settle).once("close", settle);
  for (let round = 0; round < 20_000 && !isOver; round++) await turn();
  socket.off("drain", settle).off("close", settle);
  return isOver && !socket.destroyed;
}

async function isServed(server: TestRelay): Promise<void> {
  const client = await RelayClient.connect(server.url, { headers: { "X-Forwarded-For": "198.51.100.7" } });
  assert.equal((await client.ask("q", { limit: 1 })).end[0], "EOSE");
  await client.close();
  assert.deepEqual(server.faults, []);
}

const filterOf = (value: unknown): Filter => {
  const parsed = parseFilter(value);
  assert.ok(parsed.ok);
  return parsed.filter;
};

const names = (count: number): Record<string, string[]> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`#t${index}`, ["x"]]));

describe("threats 35, 36, 38 and 48", { timeout: 900_000 }, () => {
  test("threat 35: an event with 9,900 tags is matched in a moment, whatever the filters name", () => {
    const boundMs = loopBoundMs();
    const wide = (tags: string[][]): NostrEvent => sign(author, { tags });
    const cases: [name: string, filters: Filter[][], event: NostrEvent][] = [
      [
        "40 filters with 4,900 names each",
        [Array.from({ length: 40 }, () => filterOf({ ...names(4_900), "#e": ["here"], "#z": ["missing"] }))],
        wide([["e", "here"], ...Array.from({ length: 9_900 }, (_, index) => [`t${index}`, "y"])]),
      ],
      [
        "one tag 9,900 times, under which 3,000 filters are filed that do not match",
        [Array.from({ length: 3_000 }, () => filterOf({ "#e": ["here"], "#z": ["missing"] }))],
        wide(Array.from({ length: 9_900 }, () => ["e", "here"])),
      ],
      [
        "9,900 values, of which 5,000 lead to each of 40 filters that do not match",
        [
          Array.from({ length: 40 }, () =>
            filterOf({ "#e": Array.from({ length: 4_999 }, (_, at) => hex(at)), "#z": ["missing"] }),
          ),
        ],
        wide(Array.from({ length: 9_900 }, (_, index) => ["e", hex(index)])),
      ],
    ];
    for (const [name, owners, event] of cases) {
      const index = new SubscriptionIndex<object>();
      for (const filters of owners) index.add({}, filters);
      const spentMs = leastCpuMs(() => assert.equal(index.match(event).length, 0), boundMs);
      if (process.env.TRACELESS_FIGURES) process.stderr.write(`${name}: ${spentMs.toFixed(1)} ms\n`);
      assert.ok(spentMs < boundMs, `${name}: ${spentMs} ms of processor time`);
    }
  });

  test("threat 35: names a filter, filters and values a connection are limited, and the refusal says so", async (t) => {
    const server = await startRelay({}, t);
    const client = await RelayClient.connect(server.url);
    const answer = async (id: string, ...filters: unknown[]) => (await client.ask(id, ...filters)).end;
    assert.equal((await answer("names", { ...names(32), limit: 0 }))[0], "EOSE");
    assert.match(String((await answer("more names", names(33)))[2]), /^invalid: a filter may name at most 32 tags/);
    const many = Array.from({ length: 100 }, () => ({ kinds: [1], limit: 0 }));
    for (let count = 0; count < 29; count++) assert.equal((await answer(`s${count}`, ...many))[0], "EOSE");
    assert.match(String((await answer("s29", ...many))[2]), /^blocked: .*3000 filters/);
    // Closing some makes room.
    client.send("CLOSE", "s3");
    assert.equal((await answer("s29", ...many))[0], "EOSE");
    await isServed(server);
  });

  test("threat 35: events that meet many subscriptions are offered in slices, in order, none lost and none twice", async (t) => {
    const server = await startRelay({}, t);
    const clients = await Promise.all(Array.from({ length: 10 }, () => RelayClient.connect(server.url)));
    for (const client of clients) {
      for (let sub = 0; sub < 200; sub++) client.send("REQ", `s${sub}`, { kinds: [1], limit: 0 });
      await client.ask("last", { limit: 0, kinds: [2] });
    }
    const events = Array.from({ length: 40 }, (_, index) =>
      sign(author, { content: `${index}`, created_at: 1_000 + index }),
    );
    await server.store.transact(async (tx) => {
      for (const event of events) await tx.put(event as VerifiedEvent);
    });
    // Somebody who comes while they are on their way sees each once.
    const late = await RelayClient.connect(server.url);
    await late.ask("late", { kinds: [1] });
    const expected = events.map(({ id }) => id);
    for (const client of clients) {
      await until(() => client.eventsOf("s199").length === events.length);
      assert.deepEqual(
        client.eventsOf("s0").map(({ id }) => id),
        expected,
      );
      assert.deepEqual(
        client.eventsOf("s199").map(({ id }) => id),
        expected,
      );
    }
    await late.ask("other", { limit: 0 });
    assert.deepEqual(
      late
        .eventsOf("late")
        .map(({ id }) => id)
        .sort(),
      [...expected].sort(),
    );
    for (const client of [...clients, late]) client.socket.terminate();
  });

  test("threat 36: pings nobody reads the answers of are read no further, and the connection is closed in time", async (t) => {
    const clock = new ManualClock();
    const server = await startRelay({ clock }, t);
    const before = heldHere();
    const socket = await rawSocket(t, server);
    const pings = Buffer.concat(Array.from({ length: 1_000 }, () => frameOf(0x89, Buffer.alloc(125, "p"))));
    const taken = await flood(socket, pings, 256 * mebibyte);
    const grown = (heldHere() - before) / mebibyte;
    if (process.env.TRACELESS_FIGURES)
      process.stderr.write(`pings: ${taken >> 20} MiB taken, ${grown.toFixed(1)} MiB held\n`);
    assert.ok(taken < 128 * mebibyte, "the server went on reading");
    assert.ok(grown < 48, `${grown} MiB are held`);
    await isServed(server);
    clock.advance(defaultConfig().sendStallSecs * 1_000 + 1_000);
    await until(() => server.relay.connections === 0);
  });

  test("threat 36: a ping is answered with its own bytes, between other answers too", async (t) => {
    const server = await startRelay({}, t);
    await put(server, sign(author, { content: "x" }));
    const client = await RelayClient.connect(server.url);
    const pongs: string[] = [];
    client.socket.on("pong", (data) => pongs.push(String(data)));
    client.socket.ping("one");
    const answer = client.ask("q", { limit: 1 });
    client.socket.ping("");
    client.socket.ping("x".repeat(125));
    assert.equal((await answer).events.length, 1);
    await until(() => pongs.length === 3);
    assert.deepEqual(pongs, ["one", "", "x".repeat(125)]);
  });

  test("threat 36: fragments that never make a message are bounded by address and in all, and end in time", async (t) => {
    const clock = new ManualClock();
    const limits = {
      incoming: { inAll: 8 * mebibyte, perAddress: 4 * mebibyte },
    };
    const server = await startRelay({ clock, limits }, t);
    const before = heldHere();
    const begin = frameOf(0x01, Buffer.from('["EVENT",'));
    const fragment = frameOf(0x00, Buffer.alloc(60_000, "x"));
    const ping = frameOf(0x89, Buffer.from("still here"));
    for (const ip of ["192.0.2.1", "192.0.2.2", "2001:db8::"]) {
      for (let count = 0; count < 10; count++) {
        const socket = await rawSocket(t, server, ip.endsWith(":") ? `${ip}${count + 1}` : ip);
        socket.resume();
        socket.write(begin);
        // Not the whole megabyte at once, with pings between.
        for (let piece = 0; piece < 17; piece++) socket.write(Buffer.concat([fragment, ping]));
        await new Promise<void>((resolve) => (socket.destroyed ? resolve() : socket.write("", () => resolve())));
      }
    }
    for (let round = 0; round < 20; round++) await isServed(server);
    const grown = (heldHere() - before) / mebibyte;
    if (process.env.TRACELESS_FIGURES) process.stderr.write(`fragments: ${grown.toFixed(1)} MiB held\n`);
    assert.ok(grown < 24, `${grown} MiB are held`);
    const left = server.relay.connections;
    assert.ok(left <= 16, `${left} of 30 connections hold a mebibyte each`);
    // Who goes on saying that it is there, and never finishes, is ended too.
    for (let seconds = 0; seconds < 130; seconds += 5) {
      clock.advance(5_000);
      await isServed(server);
    }
    await until(() => server.relay.connections === 0);
  });

  test("threat 38: a large event to thousands of unread subscriptions is held once, and who reads gets it", async (t) => {
    const server = await startRelay({ limits: { maxConnectionsPerIp: 1_000 } }, t);
    const reader = await RelayClient.connect(server.url, { headers: { "X-Forwarded-For": "198.51.100.7" } });
    await reader.ask("mine", { kinds: [1], limit: 0 });
    const slow = await Promise.all(Array.from({ length: 60 }, (_, index) => rawSocket(t, server, `192.0.2.${index}`)));
    for (const [at, socket] of slow.entries()) {
      for (let sub = 0; sub < 100; sub++) socket.write(textFrame(`["REQ","s${at}-${sub}",{"kinds":[1],"limit":0}]`));
    }
    await until(() => server.relay.subscriptions === 60 * 100 + 1);
    const before = heldHere();
    // 6,000 times 100 kB are 600 MB.
    const events = Array.from({ length: 3 }, (_, index) => sign(author, { content: `${index}`.padEnd(100_000, "x") }));
    for (const event of events) await put(server, event);
    await until(() => reader.eventsOf("mine").length === events.length);
    for (let round = 0; round < 50; round++) await turn();
    const grown = (heldHere() - before) / mebibyte;
    if (process.env.TRACELESS_FIGURES)
      process.stderr.write(`6,000 unread subscriptions: ${grown.toFixed(1)} MiB held\n`);
    assert.ok(grown < 40, `${grown} MiB are held`);
    assert.deepEqual(
      reader.eventsOf("mine").map(({ id }) => id),
      events.map(({ id }) => id),
    );
    // One of the slow ones reads at last, and gets all of it, whole.
    const [first] = slow;
    assert.ok(first);
    let bytes = 0;
    first.on("data", (data: Buffer) => {
      bytes += data.length;
    });
    first.resume();
    await until(() => bytes >= 3 * 100 * 100_000);
    await isServed(server);
  });

  test("threat 38: when what waits for all is too much, the slowest go first and who reads stays", async (t) => {
    const clock = new ManualClock();
    const limits = { outgoing: { inAll: 12 * mebibyte, perAddress: 6 * mebibyte } };
    const server = await startRelay({ clock, limits }, t);
    const reader = await RelayClient.connect(server.url, { headers: { "X-Forwarded-For": "198.51.100.7" } });
    await reader.ask("mine", { kinds: [1], limit: 0 });
    const slow = await Promise.all(Array.from({ length: 20 }, (_, index) => rawSocket(t, server, `192.0.2.${index}`)));
    for (const socket of slow) socket.write(textFrame('["REQ","s",{"kinds":[1],"limit":0}]'));
    await until(() => server.relay.subscriptions === 21);
    let sent = 0;
    while (server.relay.connections > 1) {
      await put(server, sign(author, { content: `${sent++}`.padEnd(500_000, "x") }));
      await until(() => reader.eventsOf("mine").length === sent);
      clock.advance(1_000);
      assert.ok(sent < 200, "never closed");
      // With the garbage first: collecting it for every event would cost more than the attack.
      assert.ok(usedHere() < 500 * mebibyte || heldHere() < 500 * mebibyte);
    }
    assert.equal(reader.eventsOf("mine").length, sent);
    await isServed(server);
  });

  test("threat 48: what open filters hold is bounded by connection, by address and in all, and given back", async (t) => {
    const server = await startRelay({}, t);
    const values = (client: number, sub: number) =>
      Array.from({ length: 5_000 }, (_, index) => hex(client * 1_000_000 + sub * 10_000 + index));
    const clients: RelayClient[] = [];
    const before = heldHere();
    let taken = 0;
    let refused = 0;
    for (let at = 0; at < 12; at++) {
      const client = await RelayClient.connect(server.url, {
        headers: { "X-Forwarded-For": at < 6 ? "192.0.2.1" : `2001:db8::${at}` },
      });
      clients.push(client);
      // Who is refused three times has nothing more to win: what is open stays open.
      for (let sub = 0, inVain = 0; sub < 43 && inVain < 3; sub++) {
        const { end } = await client.ask(`s${sub}`, { "#e": values(at, sub), limit: 0 });
        if (end[0] !== "CLOSED") taken++;
        else {
          assert.match(String(end[2]), /^blocked: the open subscriptions/);
          refused++;
          inVain++;
        }
      }
    }
    const grown = (heldHere() - before) / mebibyte;
    if (process.env.TRACELESS_FIGURES) process.stderr.write(`filters: ${grown.toFixed(1)} MiB held\n`);
    assert.equal(refused, 12 * 3);
    assert.ok(taken > 0 && taken < 192, `${taken} were taken`);
    // Two addresses: what they hold by our count, and what the test itself keeps of it.
    assert.ok(grown < 2 * 32 * 1.5, `${grown} MiB are held`);
    const other = await RelayClient.connect(server.url, { headers: { "X-Forwarded-For": "198.51.100.7" } });
    for (let sub = 0; sub < 30; sub++) {
      assert.equal((await other.ask(`s${sub}`, { "#e": values(99, sub), limit: 0 })).end[0], "EOSE");
    }
    for (const client of clients) await client.close();
    const again = await RelayClient.connect(server.url, { headers: { "X-Forwarded-For": "192.0.2.1" } });
    assert.equal((await again.ask("s", { "#e": values(1, 1), limit: 0 })).end[0], "EOSE");
    await isServed(server);
  });

  test("threat 36: an address that sends without end is read at its share of bytes a second, and goes on when its time has come", async (t) => {
    const clock = new ManualClock();
    const limits = { ...relayLimits(defaultConfig()), receivePerSecondPerIpBytes: mebibyte };
    const server = await startRelay({ clock, limits }, t);
    const socket = await rawSocket(t, server);
    socket.resume();
    // Answered each time: nothing but the bytes themselves is too much.
    const message = textFrame(JSON.stringify(["CLOSE", "x".repeat(200)]));
    const messages = Buffer.concat(Array.from({ length: 1_000 }, () => message));
    const taken = await flood(socket, messages, 64 * mebibyte);
    assert.ok(taken < 16 * mebibyte, `${taken} bytes were taken`);
    assert.ok(!socket.destroyed, "it is held back, not closed");
    await isServed(server);
    clock.advance(60_000);
    await until(() => socket.bytesWritten - socket.writableLength > taken);
  });
});
