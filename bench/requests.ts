// REQ over a real socket (goal P2) at a million events, whose LMDB was filled directly: the time from sending the
// question to its EOSE, and whether a small question waits for somebody else's big one.

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { collectGarbage } from "../src/base/collect-garbage.js";
import { type Filter, filterJson } from "../src/nostr/filter.js";
import { Random } from "../src/store/testing/random.js";
import { Asker } from "./asker.js";
import type { Flood } from "./flooding.js";
import { largeStore } from "./large-store.js";
import { programPath, startBenchServer } from "./processes.js";
import { bareAnswers } from "./requests-limit.js";
import { type Benchmark, type BenchRow, milliseconds, percentile } from "./rows.js";
import { queryShapes } from "./store.js";

const asked = 300;
/** The asker's own garbage. After each question it would cool the processor's caches down for the server. */
const askedBetweenCollections = 8;
const goalMs = 10;
/** The goal names the others; this one has no index of its own. */
const shapeWithoutGoal = "author + kind + #p";

const textOf = (filter: Filter): string => JSON.stringify(filterJson(filter));

export const requestsBenchmark: Benchmark = {
  name: "requests",
  async run() {
    const { folder, events, corpus, fingerprint } = await largeStore();
    process.stderr.write(`corpus ${fingerprint}, ${events} events\n`);
    const server = await startBenchServer(folder);
    const asker = await Asker.connect(server.port);
    const rows: BenchRow[] = [];
    // What a question that finds nothing costs: the socket there and back.
    const nothing = await timesOf(asker, () => `{"ids":["${"0".repeat(64)}"]}`);
    const floor = percentile(nothing.times, 0.5);
    const shapes = queryShapes(corpus, new Random(8));
    for (const [name, make] of Object.entries(shapes)) {
      await timesOf(asker, () => textOf(make()), 30);
      const used = await server.usage();
      const { times, rows: found } = await timesOf(asker, () => textOf(make()));
      const after = await server.usage();
      const cpuMs = ((after.mainThreadMs ?? after.cpuMs) - (used.mainThreadMs ?? used.cpuMs)) / asked;
      const p99 = percentile(times, 0.99);
      rows.push({
        work: `REQ ${name} (${Math.round(found)} rows)`,
        measured: `p50 ${milliseconds(percentile(times, 0.5))}, p99 ${milliseconds(p99)}, CPU ${milliseconds(cpuMs)}`,
        limit: `empty answer p50 ${milliseconds(floor)}`,
        ...(name === shapeWithoutGoal
          ? { goal: "-" }
          : { goal: "P2", target: `p99 < ${goalMs} ms`, met: p99 < goalMs }),
      });
    }
    rows.push(await besideBigOnes(asker, server.port, corpus.ids));
    asker.close();
    await server.close();
    for (const [name, make] of Object.entries(shapes).filter(([shape]) => shape.startsWith("#e"))) {
      const { tagsMs, allMs } = await bareAnswers(folder, Array.from({ length: 300 }, make));
      const told = (times: readonly number[]): string =>
        `p50 ${milliseconds(percentile(times, 0.5))}, p99 ${milliseconds(percentile(times, 0.99))}`;
      rows.push({ goal: "-", work: `${name}: the tags looked up in the index, nothing else`, measured: told(tagsMs) });
      rows.push({
        goal: "-",
        work: `${name}: the tags looked up, the rows read by sequence, written to a bare socket, received`,
        measured: told(allMs),
      });
    }
    return rows;
  },
};

async function timesOf(asker: Asker, make: () => string, count = asked): Promise<{ times: number[]; rows: number }> {
  const times: number[] = [];
  let rows = 0;
  for (let index = 0; index < count; index++) {
    const question = make();
    if (index % askedBetweenCollections === 0) collectGarbage();
    const answer = await asker.ask(question);
    times.push(answer.ms);
    rows += answer.rows;
  }
  return { times, rows: rows / count };
}

/** Four clients ask for 5,000 events again and again; a fifth asks by id. */
async function besideBigOnes(asker: Asker, port: number, ids: readonly string[]): Promise<BenchRow> {
  const random = new Random(9);
  const filter = textOf({ kinds: [1, 7, 1111], limit: 5_000 });
  const flood = new Worker(programPath("flooding"), { workerData: { port, clients: 4, filter } satisfies Flood });
  await once(flood, "message");
  const { times } = await timesOf(asker, () => `{"ids":["${random.pick(ids)}"]}`, asked);
  await flood.terminate();
  const p99 = percentile(times, 0.99);
  return {
    goal: "P2",
    work: "REQ by id while four others read 5,000 events each",
    measured: `p50 ${milliseconds(percentile(times, 0.5))}, p99 ${milliseconds(p99)}`,
    target: `p99 < ${goalMs} ms`,
    met: p99 < goalMs,
  };
}
