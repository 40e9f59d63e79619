// REQ over a real socket (goal P2) at a million events, whose LMDB was filled directly: the time from sending the
// question to its EOSE, and whether a small question waits for somebody else's big one.

import type { Filter } from "../src/nostr/filter.js";
import { Random } from "../src/store/testing/random.js";
import { largeStore } from "./large-store.js";
import { startBenchServer } from "./processes.js";
import { frameOf, RawClient } from "./raw-client.js";
import { type Benchmark, type BenchRow, milliseconds, percentile } from "./rows.js";
import { queryShapes } from "./store.js";

const asked = 300;
const goalMs = 10;

const filterJson = ({ tags, ...rest }: Filter): string =>
  JSON.stringify({ ...rest, ...Object.fromEntries([...(tags ?? [])].map(([name, values]) => [`#${name}`, values])) });

class Asker {
  #answered: (answer: { rows: number; bytes: number }) => void = () => undefined;
  #rows = 0;
  #bytes = 0;

  constructor(readonly client: RawClient) {
    client.onText = (payload) => {
      if (payload[2] === 0x45 && payload[3] === 0x56) {
        this.#rows++;
        this.#bytes += payload.length;
      } else if (payload.subarray(0, 6).toString() === '["EOSE') {
        this.#answered({ rows: this.#rows, bytes: this.#bytes });
      } else throw new Error(payload.toString());
    };
  }

  /** The same subscription is used again: the earlier one ends with it. */
  ask(filter: string): Promise<{ ms: number; rows: number; bytes: number }> {
    const frame = frameOf(`["REQ","q",${filter}]`);
    this.#rows = 0;
    this.#bytes = 0;
    return new Promise((resolve) => {
      const began = performance.now();
      this.#answered = (answer) => resolve({ ms: performance.now() - began, ...answer });
      this.client.socket.write(frame);
    });
  }
}

export const requestsBenchmark: Benchmark = {
  name: "requests",
  async run() {
    const { folder, events, corpus, fingerprint } = await largeStore();
    process.stderr.write(`corpus ${fingerprint}, ${events} events\n`);
    const server = await startBenchServer(folder);
    const asker = new Asker(await RawClient.connect(server.port));
    const rows: BenchRow[] = [];
    // What a question that finds nothing costs: the socket there and back.
    const nothing = await timesOf(asker, () => `{"ids":["${"0".repeat(64)}"]}`);
    const floor = percentile(nothing.times, 0.5);
    for (const [name, make] of Object.entries(queryShapes(corpus, new Random(8)))) {
      await timesOf(asker, () => filterJson(make()), 30);
      const used = await server.usage();
      const { times, rows: found } = await timesOf(asker, () => filterJson(make()));
      const cpuMs = ((await server.usage()).cpuMs - used.cpuMs) / asked;
      const p99 = percentile(times, 0.99);
      rows.push({
        goal: "P2",
        work: `REQ ${name} (${Math.round(found)} rows)`,
        measured: `p50 ${milliseconds(percentile(times, 0.5))}, p99 ${milliseconds(p99)}, CPU ${milliseconds(cpuMs)}`,
        limit: `empty answer p50 ${milliseconds(floor)}`,
        target: `p99 < ${goalMs} ms`,
        met: p99 < goalMs,
      });
    }
    rows.push(await besideBigOnes(asker, server.port, (make) => filterJson(make), corpus.ids));
    asker.client.close();
    await server.close();
    return rows;
  },
};

async function timesOf(asker: Asker, make: () => string, count = asked): Promise<{ times: number[]; rows: number }> {
  const times: number[] = [];
  let rows = 0;
  for (let index = 0; index < count; index++) {
    const answer = await asker.ask(make());
    times.push(answer.ms);
    rows += answer.rows;
  }
  return { times, rows: rows / count };
}

/** Four clients ask for 5,000 events again and again; a fifth asks by id. */
async function besideBigOnes(
  asker: Asker,
  port: number,
  text: (filter: Filter) => string,
  ids: readonly string[],
): Promise<BenchRow> {
  const random = new Random(9);
  let running = true;
  const big = await Promise.all(Array.from({ length: 4 }, async () => new Asker(await RawClient.connect(port))));
  const flood = big.map(async (one) => {
    while (running) await one.ask(text({ kinds: [1, 7, 1111], limit: 5_000 }));
  });
  const { times } = await timesOf(asker, () => `{"ids":["${random.pick(ids)}"]}`, 200);
  running = false;
  await Promise.all(flood);
  for (const one of big) one.client.close();
  const p99 = percentile(times, 0.99);
  return {
    goal: "P2",
    work: "REQ by id while four others read 5,000 events each",
    measured: `p50 ${milliseconds(percentile(times, 0.5))}, p99 ${milliseconds(p99)}`,
    target: `p99 < ${goalMs} ms`,
    met: p99 < goalMs,
  };
}
