// Several machines as one: three machines, as processes, on a PostgreSQL and a pack store, beside one server on LMDB in the
// same run. On fewer cores than machines rates say what the cores allow; ratios and processor time say what a machine does.

import { cpus } from "node:os";
import { postgresPrograms } from "../test/cluster/postgres.js";
import { batchEventsNeeded, batchRows } from "./cluster-batch.js";
import { eventRows, eventsNeeded } from "./cluster-events.js";
import { gitRows } from "./cluster-git.js";
import { setStage, tell } from "./cluster-ground.js";
import { joinRows } from "./cluster-join.js";
import { canTellCosts } from "./process-costs.js";
import { inFolder } from "./processes.js";
import type { Benchmark } from "./rows.js";
import { raised } from "./scene.js";

export const usualSizes = { events: 100_000, repositories: 200 };

export const clusterBenchmark: Benchmark = {
  name: "cluster",
  missing() {
    if (!canTellCosts) return "it counts the processor time of processes as Linux tells it in /proc: run it on Linux";
    if (postgresPrograms() !== undefined) return undefined;
    return "there is no PostgreSQL here: install one (Debian: apt-get install postgresql), or name the folder with its programs in POSTGRES_BIN";
  },
  run({ events = usualSizes.events, repositories = usualSizes.repositories }) {
    process.stderr.write(`  ${raised}; ${cpus().length} cores for three machines, PostgreSQL and clients\n`);
    return inFolder(async (folder) => {
      const stage = await setStage(folder, eventsNeeded + batchEventsNeeded);
      try {
        const rows = [...(await eventRows(stage)), ...(await gitRows(stage)), ...(await batchRows(stage))];
        await stage.closeAlone();
        rows.push(...(await joinRows(stage, { events, repositories })));
        return rows;
      } finally {
        tell("ending");
        await stage.ground.end();
      }
    });
  },
};
