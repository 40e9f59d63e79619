// Everything at once: events, questions, open subscriptions, pushes, clones, NIP-77 and a peer that follows, for
// BENCH_SECONDS (300). How long each kind of operation takes beside the others, and whether memory stays flat.

import { join } from "node:path";
import type { Benchmark } from "./rows.js";
import { loopRow, memoryRow, queueRow } from "./sampling.js";
import { lossRow, operationRows, processorRow, raised, runScene } from "./scene.js";

const goal = "mixed";
const seconds = Number(process.env.BENCH_SECONDS ?? 300);

export const mixedBenchmark: Benchmark = {
  name: "mixed",
  async run() {
    process.stderr.write(`  ${raised}\n`);
    const result = await runScene({
      repositories: 50,
      seconds,
      processes: (folder) => [
        [
          { role: "events", connections: 50, perSecond: 200 },
          { role: "requests", connections: 20, perSecond: 100 },
          { role: "negentropy", perSecond: 2 },
        ],
        [{ role: "live", sockets: 500, subscriptions: 1_000 }],
        [
          { role: "pushes", perMinute: 60, folder: join(folder, "pushes") },
          { role: "clones", perMinute: 120, folder: join(folder, "clones") },
        ],
      ],
    });
    return [
      ...operationRows(goal, result, seconds),
      processorRow(goal, result),
      memoryRow(goal, result.samples),
      loopRow(goal, result.samples, result.loopP99Ms),
      queueRow(goal, result.samples),
      lossRow(goal, result),
    ];
  },
};
