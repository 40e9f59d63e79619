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
const deliveries = { first: 200, toAll: 600, toOne: 600 };
const delivered = deliveries.first + deliveries.toAll + deliveries.toOne;
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
export const besideBare = <T>(eventBytes: number, work: (target: Target) => Promise<T>): Promise<T> =>
  besideProgram({ BARE_EVENT_BYTES: String(eventBytes) }, work);

/** Runs `work` against `ws` alone, which parses an event, checks its signature and answers. */
export const besideTaker = <T>(work: (target: Target) => Promise<T>): Promise<T> =>
  besideProgram({ BARE_EVENT_BYTES: "0", BARE_TAKES: "yes" }, work);

async function besideProgram<T>(settings: Record<string, string>, work: (target: Target) => Promise<T>): Promise<T> {
  const child = startProgram("bare-relay-program", { env: { ...process.env, ...settings } });
  try {
    return await work({ port: await nextMessage<number>(child), pid: child.pid as number });
  } finally {
    child.disconnect();
  }
}

export const deliverySockets = 400;
const receivedWithinMs = 30_000;

/** One event after the other, each to all sockets; then each to one, which is taken off: what publishing it costs. */
export async function deliveryWork({ port, pid }: Target, corpus: SignedCorpus): Promise<Figure> {
  const frames = readFileSync(corpus.file, "utf8")
    .split("\n")
    .slice(-delivered)
    .map((raw) => frameOf(`["EVENT",${raw}]`));
  const publisher = await RawClient.connect(port);
  const crowd = await Crowd.subscribed(port, deliverySockets);
  try {
    const send = async (count: number): Promise<number[]> => {
      const took: number[] = [];
      for (const frame of frames.splice(0, count)) {
        const began = performance.now();
        const received = crowd.receives();
        publisher.socket.write(frame);
        await within(receivedWithinMs, received);
        took.push(performance.now() - began);
      }
      return took;
    };
    await send(deliveries.first);
    let took: number[] = [];
    const toAll = await cpuMicrosOf(pid, deliveries.toAll, async () => {
      took = await send(deliveries.toAll);
    });
    crowd.leaveButOne();
    await pause(settleMs);
    const toOne = await cpuMicrosOf(pid, deliveries.toOne, () => send(deliveries.toOne));
    return { cpuMicros: (toAll - toOne) / (deliverySockets - 1), p50Ms: percentile(took, 0.5) };
  } finally {
    crowd.close();
    publisher.close();
  }
}

/** Sockets that wait for issues. */
class Crowd {
  #opened = 0;
  #arrived = 0;
  #all: () => void = () => undefined;

  private constructor(private listening: readonly RawClient[]) {}

  static async subscribed(port: number, count: number): Promise<Crowd> {
    const crowd = new Crowd(await connected(port, count));
    const opened = new Promise<void>((resolve) => {
      for (const client of crowd.listening) {
        client.onText = (payload) => crowd.#heard(payload, resolve);
        client.socket.write(frameOf('["REQ","s",{"kinds":[1621],"limit":0}]'));
      }
    });
    await within(receivedWithinMs, opened);
    return crowd;
  }

  /** Resolves when the next event is with everybody. */
  receives(): Promise<void> {
    this.#arrived = 0;
    return new Promise((resolve) => {
      this.#all = resolve;
    });
  }

  leaveButOne(): void {
    for (const client of this.listening.slice(1)) client.close();
    this.listening = this.listening.slice(0, 1);
  }

  close(): void {
    for (const client of this.listening) client.close();
  }

  #heard(payload: Buffer, allOpen: () => void): void {
    const verb = payload.toString("latin1", 2, 4);
    if (verb === "EO" && ++this.#opened === this.listening.length) allOpen();
    if (verb === "EV" && ++this.#arrived === this.listening.length) this.#all();
  }
}

/** Many: what V8 has not collected yet is some megabytes, whatever they are shared by. */
const idleSockets = 8_000;
const settleMs = 2_000;

/** What each of many sockets that say nothing costs. */
export async function socketWork({ port, pid }: Target): Promise<Figure> {
  // The first ones pay for what all use.
  const first = await connected(port, 1_000);
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
