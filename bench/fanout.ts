// Fan-out (goal P3): matching one event against 10,000 live subscriptions, and deliveries a second over real sockets
// whose other ends are read in a second thread; what the server's thread used is counted alone.

import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import type { EventId, NostrEvent, Pubkey, VerifiedEvent } from "../src/nostr/event.js";
import { type Filter, matcherOf } from "../src/nostr/filter.js";
import { SubscriptionIndex } from "../src/relay/live.js";
import { eventPrefix } from "../src/relay/messages.js";
import { keyOf, sign } from "../test/harness/relay-events.js";
import { startRelay } from "../test/harness/relay-server.js";
import { type Benchmark, type BenchRow, perSecond } from "./rows.js";
import { mainThreadMs } from "./thread-time.js";

const hex = (value: number): string => value.toString(16).padStart(64, "0");

/** A linear congruential generator: every run sees the same subscriptions. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** What git clients keep open: threads by root, repositories by address, people, one state. */
function subscriptionFilters(random: (below: number) => number): Filter[] {
  const many = <T>(count: number, make: () => T) => Array.from({ length: count }, make);
  const address = () => `30617:${hex(random(5_000))}:repo${random(3)}`;
  switch (random(5)) {
    case 0:
      return [{ tags: new Map([["e", many(50, () => hex(random(100_000)))]]) }];
    case 1:
      return [{ kinds: [1617, 1618, 1621], tags: new Map([["a", many(5, address)]]) }];
    case 2:
      return [{ kinds: [0, 3, 10_002], authors: many(20, () => hex(random(5_000)) as Pubkey) }];
    case 3:
      return [
        { kinds: [30_618], authors: [hex(random(5_000)) as Pubkey], tags: new Map([["d", [`repo${random(3_000)}`]]]) },
      ];
    default:
      return [{ ids: many(10, () => hex(random(100_000)) as EventId) }, { kinds: [20_000 + random(5_000)] }];
  }
}

function matching(): BenchRow[] {
  const random = randomOf(7);
  const index = new SubscriptionIndex<object>();
  const scan: ((event: NostrEvent) => boolean)[] = [];
  for (let count = 0; count < 10_000; count++) {
    const filters = subscriptionFilters(random);
    index.add({}, filters);
    const matchers = filters.map((filter) => matcherOf(filter));
    scan.push((event) => matchers.some((matches) => matches(event)));
  }
  const events = Array.from({ length: 20_000 }, (_, number) => {
    const tags = [
      ["e", hex(random(100_000)), "", "root"],
      ["e", hex(random(100_000)), "", "reply"],
      ["a", `30617:${hex(random(5_000))}:repo${random(3)}`],
      ["p", hex(random(5_000))],
    ];
    const kind = [1111, 1621, 1618, 1, 7][random(5)];
    return { id: hex(number), pubkey: hex(random(5_000)), kind, created_at: number, tags } as unknown as NostrEvent;
  });
  let found = 0;
  const timed = (list: readonly NostrEvent[], match: (event: NostrEvent) => number): number => {
    found = 0;
    // CPU time: what other programs on the machine do is not the index's cost.
    const before = process.cpuUsage();
    for (const event of list) found += match(event);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / list.length;
  };
  timed(events, (event) => index.match(event).length);
  const indexedMicros = timed(events, (event) => index.match(event).length);
  const matches = found / events.length;
  const scanMicros = timed(events.slice(0, 500), (event) => scan.filter((matches) => matches(event)).length);
  return [
    {
      goal: "P3",
      work: `matching at 10k subscriptions (${matches.toFixed(1)} match an event)`,
      measured: `${indexedMicros.toFixed(2)} µs an event`,
      limit: `scan ${scanMicros.toFixed(0)} µs`,
      ratio: indexedMicros / scanMicros,
      target: "≤ 10 µs",
      met: indexedMicros <= 10,
    },
  ];
}

interface Crowd {
  readonly connections: number;
  readonly subscriptionsEach: number;
  readonly eventsInAll: number;
  /** What shares a commit shares a write to each socket. */
  readonly eventsACommit: number;
}

const crowds: readonly Crowd[] = [
  { connections: 50, subscriptionsEach: 20, eventsInAll: 1_000, eventsACommit: 10 },
  // The hard case: every delivery is a system call of its own.
  { connections: 1_000, subscriptionsEach: 1, eventsInAll: 300, eventsACommit: 1 },
];

async function deliveries(crowd: Crowd): Promise<BenchRow> {
  const { connections, subscriptionsEach, eventsInAll, eventsACommit } = crowd;
  // No pings: the other end counts frames of one size.
  const server = await startRelay({ limits: { maxConnectionsPerIp: 10_000, pingIntervalSecs: 3_600 } });
  const key = keyOf("bench");
  const events = Array.from({ length: eventsInAll }, (_, number) =>
    sign(key, { content: String(number).padStart(8, "0").padEnd(300, "x"), created_at: 1_700_000_000 }),
  );
  const frameBytes = Buffer.byteLength(events[0]?.raw ?? "") + eventPrefix("s00").length + 1 + 4;
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { port: server.port, frameBytes, crowd } });
  const heard = (wanted: string) =>
    new Promise<void>((resolve) => {
      worker.on("message", (message) => message === wanted && resolve());
    });
  const received = heard("received");
  await heard("subscribed");
  const cpu = process.cpuUsage();
  const mainMs = mainThreadMs();
  for (let at = 0; at < events.length; at += eventsACommit) {
    await server.store.transact(async (tx) => {
      for (const event of events.slice(at, at + eventsACommit)) await tx.put(event as VerifiedEvent);
    });
    await new Promise((resolve) => setImmediate(resolve));
  }
  await received;
  const { user, system } = process.cpuUsage(cpu);
  const serverMs = mainMs === undefined ? (user + system) / 1_000 : (mainThreadMs() ?? 0) - mainMs;
  const sent = await server.registry.getSingleMetric("ngit_websocket_messages_sent_total")?.get();
  const sentEvents = sent?.values.find(({ labels }) => labels.type === "EVENT")?.value;
  await worker.terminate();
  await server.close();
  const count = connections * subscriptionsEach * eventsInAll;
  if (sentEvents !== count) throw new Error(`${sentEvents} deliveries were sent, not ${count}`);
  const bareMicros = await bareWrites(connections, frameBytes, Math.ceil(100_000 / connections));
  const aCore = (count / serverMs) * 1_000;
  return {
    goal: "P3",
    work: `deliveries of ${frameBytes} bytes, ${connections} sockets × ${subscriptionsEach}, ${eventsACommit} a commit`,
    measured: `${perSecond(count, serverMs)} a core (${((serverMs / count) * 1_000).toFixed(2)} µs each)`,
    limit: `${bareMicros.toFixed(2)} µs a bare socket.write`,
    ratio: bareMicros / ((serverMs / count) * 1_000),
    target: "≥ 200,000/s a core",
    met: aCore >= 200_000,
  };
}

/** The same bytes to as many sockets with Node alone: one write each, nothing decided. */
async function bareWrites(connections: number, frameBytes: number, rounds: number): Promise<number> {
  const frame = Buffer.alloc(frameBytes, 1);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  const all = new Promise<void>((resolve) => {
    server.on("connection", (socket) => {
      socket.on("error", () => undefined);
      if (sockets.push(socket) === connections) resolve();
    });
  });
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { drain: { port, connections } } });
  await all;
  const mainMs = mainThreadMs() ?? 0;
  for (let round = 0; round < rounds; round++) {
    await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.write(frame, () => resolve()))));
  }
  const micros = (((mainThreadMs() ?? 0) - mainMs) * 1_000) / (connections * rounds);
  await worker.terminate();
  for (const socket of sockets) socket.destroy();
  server.close();
  return micros;
}

function drain({ port, connections }: { readonly port: number; readonly connections: number }): void {
  for (let number = 0; number < connections; number++) connect(port, "127.0.0.1").resume();
}

/** The other end: opens the subscriptions, then walks the frames, all of one size, and counts them. */
function receive(port: number, frameBytes: number, crowd: Crowd): void {
  const { connections, subscriptionsEach, eventsInAll } = crowd;
  const expectedFrames = connections * subscriptionsEach * eventsInAll;
  let frames = 0;
  let subscribed = 0;
  const maskedFrame = (text: string) =>
    Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]);
  for (let number = 0; number < connections; number++) {
    const socket = connect(port, "127.0.0.1");
    let greeting = "";
    let open = false;
    let taken = 0;
    socket.write(
      "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    socket.on("data", (data: Buffer) => {
      if (open) {
        let at = (frameBytes - (taken % frameBytes)) % frameBytes;
        for (; at < data.length; at += frameBytes) {
          if (data[at] !== 0x81) throw new Error("a frame does not begin where one should");
        }
        frames += Math.floor((taken + data.length) / frameBytes) - Math.floor(taken / frameBytes);
        taken += data.length;
        if (frames === expectedFrames) parentPort?.postMessage("received");
        return;
      }
      if (greeting === "") {
        for (let sub = 0; sub < subscriptionsEach; sub++) {
          socket.write(maskedFrame(`["REQ","s${String(sub).padStart(2, "0")}",{"kinds":[1],"limit":0}]`));
        }
      }
      greeting += data.toString("latin1");
      if (greeting.split('["EOSE"').length - 1 === subscriptionsEach) {
        open = true;
        if (++subscribed === connections) parentPort?.postMessage("subscribed");
      }
    });
  }
}

export const fanoutBenchmark: Benchmark = {
  name: "fanout",
  async run() {
    const rows = matching();
    for (const crowd of crowds) rows.push(await deliveries(crowd));
    return rows;
  },
};

if (!isMainThread) {
  if (workerData.drain) drain(workerData.drain as Parameters<typeof drain>[0]);
  else receive(workerData.port as number, workerData.frameBytes as number, workerData.crowd as Crowd);
}
