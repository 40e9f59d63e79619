// The works of `bench -- peers` over WebSockets: what a relay does. Each answers the time somebody waits and the
// processor time of the whole server; the clients' time is nobody's.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Asker } from "./asker.js";
import { seededRandom } from "./corpus.js";
import { send } from "./ingest.js";
import { treeMemory, treeMs } from "./process-costs.js";
import { nextMessage, startProgram } from "./processes.js";
import { frameOf, RawClient } from "./raw-client.js";
import { percentile } from "./rows.js";
import type { SignedCorpus } from "./signed-corpus.js";

export interface Target {
  readonly port: number;
  readonly pid: number;
}

export interface Figure {
  readonly p50Ms?: number;
  readonly cpuMicros?: number;
  readonly perSecond?: number;
  readonly bytes?: number;
}

/** Runs `work` and answers what the server used, divided by `count`. */
export async function cpuMicrosOf(pid: number, count: number, work: () => Promise<unknown>): Promise<number> {
  const before = treeMs(pid);
  await work();
  return ((treeMs(pid) - before) * 1_000) / count;
}

/** Which events the works publish, by their place in the corpus. */
const warmUp = 2_000;
const ingested = 10_000;
const delivered = 200;
export const corpusEvents = warmUp + ingested + delivered;

export async function ingestWork({ port, pid }: Target, { file }: SignedCorpus): Promise<Figure> {
  const crowd = { ports: [port], file, connections: 50, outstanding: 20 };
  await send({ ...crowd, skip: 0, count: warmUp });
  let result = { p50Ms: Number.NaN, ms: Number.NaN };
  const cpuMicros = await cpuMicrosOf(pid, ingested, async () => {
    result = await send({ ...crowd, skip: warmUp, count: ingested });
  });
  return { cpuMicros, p50Ms: result.p50Ms, perSecond: (ingested / result.ms) * 1_000 };
}

export interface Question {
  readonly name: string;
  readonly filter: (events: readonly Stored[], random: () => number) => string;
  readonly times: number;
  /** Rows that must come back; a server that answers fewer did less work. */
  readonly rows: number;
}

interface Stored {
  readonly id: string;
  readonly pubkey: string;
}

const anyOf = <T>(list: readonly T[], random: () => number): T => list[Math.floor(random() * list.length)] as T;
const hexOf = (random: () => number): string => createHash("sha256").update(String(random())).digest("hex");

function busyAuthors(events: readonly Stored[]): string[] {
  const counts = new Map<string, number>();
  for (const { pubkey } of events) counts.set(pubkey, (counts.get(pubkey) ?? 0) + 1);
  return [...counts].filter(([, count]) => count >= 100).map(([pubkey]) => pubkey);
}

export const questions = (repository: string): readonly Question[] => [
  {
    name: "REQ by id",
    filter: (events, random) => `{"ids":["${anyOf(events, random).id}"]}`,
    times: 5_000,
    rows: 1,
  },
  { name: "REQ #a, limit 500", filter: () => `{"#a":["${repository}"],"limit":500}`, times: 300, rows: 500 },
  {
    name: "REQ #e × 1,000, nothing found",
    filter: (_events, random) => `{"#e":${JSON.stringify(Array.from({ length: 1_000 }, () => hexOf(random)))}}`,
    times: 400,
    rows: 0,
  },
  {
    name: "REQ author, limit 100",
    filter: (events, random) => `{"authors":["${anyOf(busyAuthors(events), random)}"],"limit":100}`,
    times: 1_000,
    rows: 100,
  },
];

const preparedFilters = 200;

export async function questionWork(
  target: Target,
  { filter, times, rows }: Question,
  corpus: SignedCorpus,
): Promise<Figure> {
  const events = readFileSync(corpus.file, "utf8")
    .split("\n", warmUp + ingested)
    .map((line) => JSON.parse(line) as Stored);
  const random = seededRandom(5);
  const filters = Array.from({ length: preparedFilters }, () => filter(events, random));
  const asker = await Asker.connect(target.port);
  try {
    const took: number[] = [];
    const ask = async (count: number): Promise<void> => {
      for (let index = 0; index < count; index++) {
        const answer = await asker.ask(filters[index % filters.length] as string);
        if (answer.rows < rows) throw new Error(`${answer.rows} rows came back, not ${rows}`);
        took.push(answer.ms);
      }
    };
    // A program that is compiled while it runs has to have run.
    await ask(times);
    took.length = 0;
    const cpuMicros = await cpuMicrosOf(target.pid, times, () => ask(times));
    return { cpuMicros, p50Ms: percentile(took, 0.5) };
  } finally {
    asker.close();
  }
}

/** Runs `work` against `ws` alone, which answers with one event of so many bytes, or none. */
export async function besideBare<T>(eventBytes: number, work: (target: Target) => Promise<T>): Promise<T> {
  const child = startProgram("bare-relay-program", { env: { ...process.env, BARE_EVENT_BYTES: String(eventBytes) } });
  try {
    return await work({ port: await nextMessage<number>(child), pid: child.pid as number });
  } finally {
    child.disconnect();
  }
}

export const deliverySockets = 400;
const receivedWithinMs = 30_000;

/** One event after the other, each to all sockets; what publishing it costs is in it. */
export async function deliveryWork(
  { port, pid }: Target,
  corpus: SignedCorpus,
): Promise<Figure & { readonly frameBytes: number }> {
  const lines = readFileSync(corpus.file, "utf8")
    .split("\n")
    .slice(-delivered)
    .map((raw) => frameOf(`["EVENT",${raw}]`));
  const listening = await connected(port, deliverySockets);
  const publisher = await RawClient.connect(port);
  try {
    let isOpen: () => void = () => undefined;
    let arrived = 0;
    let frameBytes = 0;
    let all: () => void = () => undefined;
    let opened = 0;
    const allOpen = new Promise<void>((resolve) => {
      isOpen = resolve;
    });
    for (const client of listening) {
      client.onText = (payload) => {
        const verb = payload.toString("latin1", 2, 4);
        if (verb === "EO" && ++opened === deliverySockets) isOpen();
        if (verb !== "EV") return;
        frameBytes = payload.length + 4;
        if (++arrived === deliverySockets) all();
      };
      client.socket.write(frameOf('["REQ","s",{"kinds":[1621],"limit":0}]'));
    }
    await within(receivedWithinMs, allOpen);
    const took: number[] = [];
    const send = async (frames: readonly Buffer[]): Promise<void> => {
      for (const frame of frames) {
        arrived = 0;
        const received = new Promise<void>((resolve) => {
          all = resolve;
        });
        const began = performance.now();
        publisher.socket.write(frame);
        await within(receivedWithinMs, received);
        took.push(performance.now() - began);
      }
    };
    const first = delivered / 4;
    await send(lines.slice(0, first));
    took.length = 0;
    const count = (delivered - first) * deliverySockets;
    const cpuMicros = await cpuMicrosOf(pid, count, () => send(lines.slice(first)));
    return { cpuMicros, p50Ms: percentile(took, 0.5), frameBytes };
  } finally {
    for (const client of [...listening, publisher]) client.close();
  }
}

const idleSockets = 2_000;
const settleMs = 2_000;

/** What each of many sockets that say nothing costs. */
export async function socketWork({ port, pid }: Target): Promise<Figure> {
  // The first ones pay for what all use.
  const first = await connected(port, 200);
  await pause(settleMs);
  const before = treeMemory(pid).rssBytes;
  const clients = await connected(port, idleSockets);
  await pause(settleMs);
  const bytes = (treeMemory(pid).rssBytes - before) / idleSockets;
  for (const client of [...first, ...clients]) client.close();
  return { bytes };
}

async function connected(port: number, count: number): Promise<RawClient[]> {
  const clients: RawClient[] = [];
  while (clients.length < count) {
    const some = Math.min(100, count - clients.length);
    clients.push(...(await Promise.all(Array.from({ length: some }, () => RawClient.connect(port)))));
  }
  return clients;
}

export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = pause(ms, undefined, { signal: over.signal }).then(() => {
    throw new Error(`no answer within ${ms / 1_000} s`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}
