// Events and questions on a cluster beside a server that is alone: one at a time, in batches, live on another machine, and
// each of these while a batch runs.

import { cpus } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { Asker } from "./asker.js";
import { type ProcessorUse, type Side, type Sides, type Stage, tell, total, usedSince } from "./cluster-ground.js";
import { commitText, goal, microseconds, scaled, timesRow, timesText } from "./cluster-rows.js";
import { send } from "./ingest.js";
import type { IngestResult } from "./ingest-load.js";
import { frameOf, RawClient } from "./raw-client.js";
import { type BenchRow, percentile, perSecond } from "./rows.js";
import { addressOf } from "./traffic.js";

/** Both sides are measured in turn, so that who else is at work on the machine is at work beside both. */
const blocks = 6;
const eventsABlock = scaled(50);
const liveEvents = scaled(200);
const paceMs = 20;
const warmUp = scaled(3_000);
const batchEvents = scaled(15_000);
const questionsABlock = scaled(50);
const goalOkMs = 25;
const goalLiveMs = { p50: 20, p99: 300 };
const goalIngest = 0.5;

/** What this file takes from the corpus. */
export const eventsNeeded = blocks * eventsABlock + 2 * liveEvents + warmUp + 2 * batchEvents;

const answersWithinMs = 60_000;

/** Signed events begin with it. */
const idOf = (raw: string): string => raw.slice(7, 71);

/** Publishes one event at a time, each to the next machine. */
export class Teller {
  readonly #waiting = new Map<string, (isOk: boolean, text: string) => void>();
  #turn = 0;

  private constructor(readonly clients: readonly RawClient[]) {
    for (const client of clients) {
      client.onText = (payload) => {
        const [verb, id, isOk, text] = JSON.parse(payload.toString()) as [string, string, boolean, string];
        if (verb === "OK") this.#waiting.get(id)?.(isOk, text);
      };
    }
  }

  static async connect(ports: readonly number[]): Promise<Teller> {
    return new Teller(await Promise.all(ports.map((port) => RawClient.connect(port))));
  }

  /** Milliseconds to its OK. */
  async tell(raw: string): Promise<number> {
    const id = idOf(raw);
    const client = this.clients[this.#turn++ % this.clients.length];
    const began = performance.now();
    await new Promise<void>((resolve, reject) => {
      const tooLate = setTimeout(() => reject(new Error(`${id} was not answered`)), answersWithinMs);
      this.#waiting.set(id, (isOk, text) => {
        clearTimeout(tooLate);
        if (isOk) resolve();
        else reject(new Error(text));
      });
      client?.socket.write(frameOf(`["EVENT",${raw}]`));
    });
    this.#waiting.delete(id);
    return performance.now() - began;
  }

  close(): void {
    for (const client of this.clients) client.close();
  }
}

/** A subscriber of one repository. */
export class Listener {
  readonly #waiting = new Map<string, () => void>();

  private constructor(readonly client: RawClient) {}

  static async connect(port: number, repository: string): Promise<Listener> {
    const listener = new Listener(await RawClient.connect(port));
    const { client } = listener;
    await new Promise<void>((resolve) => {
      client.onText = () => resolve();
      const filter = JSON.stringify({ kinds: [1621], "#a": [repository], limit: 0 });
      client.socket.write(frameOf(`["REQ","live",${filter}]`));
    });
    client.onText = (payload) => {
      const at = payload.indexOf('{"id":"');
      if (at >= 0) listener.#waiting.get(payload.toString("latin1", at + 7, at + 71))?.();
    };
    return listener;
  }

  /** Milliseconds since `sentMs` when it arrives. */
  async hears(raw: string, sentMs: number): Promise<number> {
    const id = idOf(raw);
    await new Promise<void>((resolve, reject) => {
      const tooLate = setTimeout(() => reject(new Error(`${id} did not arrive`)), answersWithinMs);
      this.#waiting.set(id, () => {
        clearTimeout(tooLate);
        resolve();
      });
    });
    this.#waiting.delete(id);
    return performance.now() - sentMs;
  }
}

/** Those who hear what the first machine is told: on the others, or on the one that is alone. */
export async function listenersOf({ ports, repository }: Side): Promise<Listener[]> {
  const others = ports.length > 1 ? ports.slice(1) : ports;
  return Promise.all(others.map((port) => Listener.connect(port, addressOf(repository))));
}

const both = async <T>(sides: Sides<Side>, make: (side: Side) => Promise<T>): Promise<Sides<T>> => ({
  alone: await make(sides.alone),
  together: await make(sides.together),
});
const names = ["alone", "together"] as const;

async function oneByOne({ ground, sides, issues }: Stage): Promise<BenchRow> {
  tell("one event at a time");
  const tellers = await both(sides, ({ ports }) => Teller.connect(ports));
  const times = { alone: [] as number[], together: [] as number[] };
  const bare: number[] = [];
  for (let block = 0; block < blocks; block++) {
    const { lines } = issues.take(eventsABlock);
    for (const name of names) for (const raw of lines) times[name].push(await tellers[name].tell(raw));
    for (let index = 0; index < eventsABlock; index++) bare.push(await ground.bareCommit());
  }
  for (const name of names) tellers[name].close();
  return timesRow("one event at a time, each to the next machine: to its OK", times, {
    limit: commitText(bare, times.together),
    target: `p50 < ${goalOkMs} ms`,
    met: percentile(times.together, 0.5) < goalOkMs,
  });
}

async function live({ sides, issues }: Stage): Promise<BenchRow> {
  tell("events that are live on another machine");
  const { lines } = issues.take(liveEvents);
  const times = { alone: [] as number[], together: [] as number[] };
  const afterOk: number[] = [];
  for (const name of names) {
    const listeners = await listenersOf(sides[name]);
    const teller = await Teller.connect(sides[name].ports.slice(0, 1));
    for (const raw of lines) {
      const sentMs = performance.now();
      const heard = Promise.all(listeners.map((listener) => listener.hears(raw, sentMs)));
      const okMs = await teller.tell(raw);
      const arrived = await heard;
      times[name].push(...arrived);
      if (name === "together") afterOk.push(...arrived.map((ms) => Math.max(0, ms - okMs)));
      await pause(paceMs);
    }
    for (const listener of listeners) listener.client.close();
    teller.close();
  }
  return timesRow("published on one machine, live on the others", times, {
    note: `after its OK ${timesText(afterOk)}`,
    target: `p50 < ${goalLiveMs.p50} ms, p99 < ${goalLiveMs.p99} ms`,
    met: percentile(times.together, 0.5) < goalLiveMs.p50 && slowestGoal(times.together).met,
  });
}

/** Also beside a batch. */
export const slowestGoal = (times: readonly number[]): { readonly target: string; readonly met: boolean } => ({
  target: `p99 < ${goalLiveMs.p99} ms`,
  met: percentile(times, 0.99) < goalLiveMs.p99,
});

interface BatchRun {
  readonly result: IngestResult;
  readonly used: ProcessorUse;
}

/** `perSecond`: not as many as are answered. */
export const batchOf = (
  stage: Stage,
  ports: readonly number[],
  { skip, count, perSecond }: { readonly skip: number; readonly count: number; readonly perSecond?: number },
): Promise<IngestResult> =>
  send({
    ...{ ports, file: stage.issues.file, skip, count, connections: 50, outstanding: 20 },
    ...(perSecond !== undefined && { perSecond }),
  });

async function batch(stage: Stage, side: Side, ports: readonly number[], skip: number): Promise<BatchRun> {
  const before = side.used();
  const result = await batchOf(stage, ports, { skip, count: batchEvents });
  // What the other machines still have to do with it is theirs too.
  await pause(500);
  return { result, used: usedSince(side.used(), before) };
}

const eachEvent = (ms: number): string => microseconds(ms, batchEvents);

async function batches(stage: Stage): Promise<BenchRow[]> {
  const { sides, issues } = stage;
  const { alone, together } = sides;
  tell("batches: warming up");
  const warm = issues.take(warmUp);
  for (const side of [alone, together]) await batchOf(stage, side.ports, { skip: warm.skip, count: warmUp });
  const first = issues.take(batchEvents).skip;
  const second = issues.take(batchEvents).skip;
  tell(`batches of ${batchEvents.toLocaleString("en")} events`);
  const single = await batch(stage, alone, alone.ports, first);
  const spread = await batch(stage, together, together.ports, first);
  const onOne = await batch(stage, together, together.ports.slice(0, 1), second);
  const rate = ({ result }: BatchRun): number => batchEvents / result.ms;
  const allowed = (cpus().length * batchEvents) / (total(spread.used) + spread.result.cpuMs);
  const ratio = rate(spread) / rate(single);
  const [, ...followers] = onOne.used.machines;
  const applying = followers.reduce((sum, ms) => sum + ms, 0) / followers.length;
  const text = ({ result, used }: BatchRun): string =>
    `${perSecond(batchEvents, result.ms)}, OK p99 ${Math.round(result.p99Ms)} ms; ${eachEvent(total(used))} of processor an event`;
  return [
    {
      goal,
      work: "batch, 50 sockets × 20, spread over the machines",
      measured: `${text(spread)}, ${eachEvent(spread.used.postgres)} of them PostgreSQL's`,
      limit: `alone ${text(single)}; ${cpus().length} cores allow ${perSecond(allowed, 1)}`,
      ratio,
      target: `≥ ${goalIngest} of one alone`,
      met: ratio >= goalIngest,
    },
    {
      goal,
      work: "  the same to one machine",
      measured: `${text(onOne)}; each other machine ${eachEvent(applying)} an event`,
      limit: `alone ${eachEvent(total(single.used))}`,
      ratio: rate(onOne) / rate(single),
    },
  ];
}

async function questions({ sides }: Stage): Promise<BenchRow[]> {
  tell("questions");
  const filter = (side: Side): string => JSON.stringify({ "#a": [addressOf(side.repository)], limit: 100 });
  const alone = await Asker.connect(sides.alone.ports[0] ?? 0);
  const rows: BenchRow[] = [];
  for (const [index, port] of sides.together.ports.entries()) {
    const asker = await Asker.connect(port);
    const times = { alone: [] as number[], together: [] as number[] };
    const used = { alone: 0, together: 0 };
    for (let block = 0; block < blocks; block++) {
      for (const name of names) {
        const [side, asked] = name === "alone" ? [sides.alone, alone] : [sides.together, asker];
        const before = side.used();
        for (let number = 0; number < questionsABlock; number++) times[name].push((await asked.ask(filter(side))).ms);
        const since = usedSince(side.used(), before);
        used[name] += (since.machines[name === "alone" ? 0 : index] ?? 0) + since.postgres;
      }
    }
    asker.close();
    const count = blocks * questionsABlock;
    rows.push({
      ...timesRow(`REQ #a, 100 rows, to its EOSE, machine ${index + 1}`, times, {
        note: `${microseconds(used.together, count)} of the machine's and PostgreSQL's processor each`,
        limit: microseconds(used.alone, count),
      }),
    });
  }
  alone.close();
  return rows;
}

export async function eventRows(stage: Stage): Promise<BenchRow[]> {
  return [await oneByOne(stage), await live(stage), ...(await batches(stage)), ...(await questions(stage))];
}
