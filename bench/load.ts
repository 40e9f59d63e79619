// 5,000 sockets, 10,000 subscriptions, 100 pushes and 200 clones a minute and a peer that follows, all at once for
// BENCH_SECONDS (600) on loopback, from processes of their own: nothing lost, no queue without bound, event loop p99
// below 50 ms. Server and clients need 6,000 open files each: `ulimit -n 8192` before it, if the shell gives less.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Benchmark } from "./rows.js";
import { loopRow, memoryRow, queueRow } from "./sampling.js";
import { lossRow, operationRows, processorRow, raised, runScene } from "./scene.js";

const goal = "load";
const seconds = Number(process.env.BENCH_SECONDS ?? 600);
const sockets = 5_000;
const subscriptions = 10_000;
const pushesPerMinute = 100;
const clonesPerMinute = 200;

/** Both sides of a socket are one process's each; beside them some for git, the store and /metrics. */
const filesNeeded = sockets + 1_000;

export const loadBenchmark: Benchmark = {
  name: "load",
  async run() {
    const files = maxOpenFiles();
    if (files < filesNeeded) {
      throw new Error(`a process may open ${files} files here, ${filesNeeded} are needed: ulimit -n 8192`);
    }
    process.stderr.write(`  ${raised}; ${files} open files a process\n`);
    const result = await runScene({
      repositories: 200,
      seconds,
      processes: (folder) => [
        [{ role: "live", sockets: sockets - 40, subscriptions }],
        [
          { role: "events", connections: 25, perSecond: 50 },
          { role: "requests", connections: 15, perSecond: 25 },
        ],
        [
          { role: "pushes", perMinute: pushesPerMinute, folder: join(folder, "pushes") },
          { role: "clones", perMinute: clonesPerMinute, folder: join(folder, "clones") },
        ],
      ],
    });
    const done = (operation: string): number =>
      result.traffic.flatMap(({ measured }) => measured).find((one) => one.operation === operation)?.count ?? 0;
    const rates = [done("git push"), done("git clone")].map((count) => (count * 60) / seconds);
    const [pushes = 0, clones = 0] = rates;
    return [
      {
        goal,
        work: `${sockets.toLocaleString("en")} sockets, ${subscriptions.toLocaleString("en")} subscriptions; pushes and clones a minute`,
        measured: `${pushes.toFixed(0)} and ${clones.toFixed(0)}`,
        target: `${pushesPerMinute} and ${clonesPerMinute}`,
        met: pushes >= pushesPerMinute * 0.95 && clones >= clonesPerMinute * 0.95,
      },
      ...operationRows(goal, result, seconds),
      processorRow(goal, result),
      memoryRow(goal, result.samples),
      loopRow(goal, result.samples, result.loopP99Ms),
      queueRow(goal, result.samples),
      lossRow(goal, result),
    ];
  },
};

/** Node raises its soft limit to the hard one at start; this is what counts. */
function maxOpenFiles(): number {
  const line = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "utf8"));
  return line?.[1] === undefined || line[1] === "unlimited" ? Number.POSITIVE_INFINITY : Number(line[1]);
}
