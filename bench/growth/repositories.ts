// More repositories: what a start, idling, a push, looking after them, the sweep and a backup cost. For idling the server's
// clock runs sixty times as fast, so that ten minutes are ten seconds: what it does then comes round by the clock.

import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { systemClock } from "../../src/base/clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { Launcher } from "../../src/git/launcher.js";
import { Repositories } from "../../src/git/repositories.js";
import { Git } from "../../src/git/run.js";
import { CarryOut } from "../../src/intake/carry-out.js";
import { Sweep } from "../../src/intake/sweep.js";
import { Purgatory } from "../../src/purgatory/purgatory.js";
import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { Ledger } from "../ledger.js";
import { anonymousBytes, ownChildrenMs, processorMs, treeMs } from "../process-costs.js";
import { type BenchServer, freePort, inFolder, startBenchServer } from "../processes.js";
import type { HostedRepository } from "../traffic.js";
import { Publisher, Pusher } from "../traffic-git.js";
import type { Curve, Values } from "./curve.js";
import { type Placing, placedSettings, placeRepositories, templateIn } from "./placed.js";
import { atRest, costMs, metricOf, pageMs, pause } from "./settled.js";

const speed = 60;
const idleMs = 10 * 60_000;
const pushes = 10;
const pagesAsked = 4;

/** From the start until everything was looked at once, then ten minutes in which nobody asks. */
async function idling({ folder, port }: Placing, progress: (text: string) => void): Promise<Values> {
  const settings = { ...placedSettings(port), BENCH_CLOCK_SPEED: String(speed) };
  const server = await startBenchServer(folder, settings, port);
  const start = processorMs(server.pid);
  progress("the first look at all of them");
  while ((await metricOf(server, "ngit_git_housekeeping_queue")) > 0) await pause(1_000);
  await pause(2_000);
  const firstLook = treeMs(server.pid) - start;
  progress("ten idle minutes");
  const idle = await costMs(server, () => pause(idleMs / speed));
  const memory = anonymousBytes(server.pid) / 2 ** 20;
  await server.close();
  return { start, "first look after a start": firstLook, "ten idle minutes": idle, memory };
}

async function pushing(server: BenchServer, folder: string, hosted: readonly HostedRepository[]): Promise<number> {
  const publisher = await Publisher.connect(server.port);
  const ledger = new Ledger();
  const step = Math.max(1, Math.floor(hosted.length / pushes));
  const chosen = hosted.filter((_, at) => at % step === 0).slice(0, pushes);
  const pushers = chosen.map((one, at) => new Pusher(server.port, one, join(folder, `pusher-${at}`), publisher));
  for (const pusher of pushers) await pusher.open();
  await atRest(server);
  const ms = await costMs(
    server,
    async () => {
      for (const pusher of pushers) await pusher.push(ledger);
    },
    true,
  );
  publisher.client.close();
  const failures = ledger.measured().reduce((sum, { failures: count }) => sum + count, 0);
  if (failures > 0) throw new Error(`${failures} pushes failed`);
  return ms / pushers.length;
}

const program = fileURLToPath(new URL("../../src/main.js", import.meta.url));

/** The server's part and the command's own. */
async function backingUp(server: BenchServer, folder: string, target: string): Promise<number> {
  const beforeMs = ownChildrenMs();
  const serverMs = await costMs(server, () =>
    promisify(execFile)(process.execPath, [program, "backup", target, "--json"], {
      env: {
        PATH: process.env.PATH ?? "",
        HOME: folder,
        NGIT_DATA_PATH: folder,
        NGIT_DOMAIN: `127.0.0.1:${server.port}`,
      },
      maxBuffer: 2 ** 26,
    }),
  );
  return serverMs + ownChildrenMs() - beforeMs;
}

/** One turn with its hourly chores, over the same data, in this process. */
async function sweeping(folder: string): Promise<number> {
  const launcher = new Launcher();
  const store = await openLmdbStore(join(folder, "relay"));
  const clock = systemClock;
  const repositories = new Repositories({
    gitDataPath: join(folder, "git"),
    git: await Git.find(launcher),
    clock,
    store,
  });
  const purgatory = new Purgatory({
    ...{ store, repositories, clock, disks: { fullest: 0 } },
    live: { current: defaultConfig({ purgatoryStartGraceSecs: 0 }) },
    observer: {
      released: () => undefined,
      expired: () => undefined,
      problem: () => undefined,
      failed: () => undefined,
    },
  });
  const sweep = new Sweep(new CarryOut(purgatory));
  const before = process.cpuUsage();
  await sweep.run();
  const { user, system } = process.cpuUsage(before);
  await purgatory.close();
  await launcher.close();
  await store.close();
  return (user + system) / 1_000;
}

const ms = "ms of processor time";

export const repositoriesCurve: Curve = {
  name: "repositories",
  of: "repositories",
  sizes: [100, 1_000, 10_000],
  series: [
    { name: "start", unit: ms, work: "each" },
    { name: "first look after a start", unit: ms, work: "each" },
    { name: "ten idle minutes", unit: ms, work: "each" },
    { name: "memory", unit: "MiB", work: "each" },
    { name: "state event and push", unit: ms, work: "one" },
    { name: "first page", unit: ms, work: "one" },
    { name: "search for a repository", unit: ms, work: "one" },
    { name: "metrics", unit: ms, work: "each" },
    { name: "sweep with its chores", unit: ms, work: "each" },
    { name: "backup", unit: ms, work: "each" },
  ],
  measure: (size, progress) =>
    inFolder(async (scratch) => {
      const folder = join(scratch, "data");
      const template = await templateIn(scratch, (work) => writeFile(join(work, "README.md"), "# A repository\n"));
      const placing = { folder, port: await freePort(), count: size, template, issues: 5 };
      const hosted = await placeRepositories(placing, progress);
      const idle = await idling(placing, progress);
      const server = await startBenchServer(folder, placedSettings(placing.port), placing.port);
      await atRest(server);
      progress("pushes");
      const push = await pushing(server, scratch, hosted);
      progress("pages");
      const values: Values = {
        ...idle,
        "state event and push": push,
        "first page": await pageMs(server, "/", pagesAsked),
        "search for a repository": await pageMs(server, "/?q=repository-77", pagesAsked),
        metrics: await pageMs(server, "/metrics", pagesAsked),
      };
      progress("a backup");
      const backup = await backingUp(server, folder, join(scratch, "backups"));
      await server.close();
      progress("a sweep");
      return { ...values, backup, "sweep with its chores": await sweeping(folder) };
    }),
};
