// The whole server in a process of its own, to be measured from outside. Takes settings from the environment; says by
// message when it listens, and what it uses when asked. BENCH_POLICY: `all` takes every event, `grasp` is the real one.
// BENCH_CLOCK_SPEED: its clock runs so many times as fast, so that what comes round by the clock does so in less time.

import "./ends-with-parent.js";
import { monitorEventLoopDelay } from "node:perf_hooks";
import pino from "pino";
import type { AdmissionPolicy } from "../src/admission/verdict.js";
import { type Clock, systemClock } from "../src/base/clock.js";
import { createLiveConfig, loadConfig } from "../src/config/load.js";
import type { Usage } from "./processes.js";
import { HoldWatch, mainThreadMs } from "./thread-time.js";

const takeAll: AdmissionPolicy = async () => ({ ok: true, action: "store", rule: "bench" });

function clockOfSpeed(speed: number): Clock {
  const startMs = Date.now();
  const startMonotonicMs = performance.now();
  return {
    nowMs: () => startMs + (Date.now() - startMs) * speed,
    monotonicMs: () => startMonotonicMs + (performance.now() - startMonotonicMs) * speed,
    after: (delayMs, callback) => systemClock.after(delayMs / speed, callback),
  };
}

const speed = Number(process.env.BENCH_CLOCK_SPEED ?? 1);

const load = () =>
  loadConfig({
    flags: {},
    environment: process.env,
    configPath: undefined,
    readFile: () => "",
    surroundings: { logIsTerminal: false, cores: 2 },
  });

const loaded = load();
if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
const fail = (error: unknown): never => {
  throw error;
};
// A server that is alone does not load what only a cluster needs.
const start =
  loaded.config.databaseBackend === "postgres"
    ? (await import("../src/start-cluster.js")).startClusterServer
    : (await import("../src/server.js")).startServer;
const server = await start({
  live: createLiveConfig(loaded, load),
  logger: pino({ level: "silent" }),
  clock: speed === 1 ? systemClock : clockOfSpeed(speed),
  build: { version: "bench", commit: "bench" },
  cores: 2,
  onFault: fail,
  onRequestFault: fail,
  ...(process.env.BENCH_POLICY === "grasp" ? {} : { policy: takeAll }),
});

const loopDelay = monitorEventLoopDelay({ resolution: 10 });
loopDelay.enable();

function usage(): Usage {
  const loopP99Ms = loopDelay.percentile(99) / 1e6;
  globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed, external } = process.memoryUsage();
  // What the collection just made stands still is not the server's.
  setImmediate(() => loopDelay.reset());
  return {
    cpuMs: (user + system) / 1_000,
    mainThreadMs: mainThreadMs(),
    rssBytes: rss,
    heapBytes: heapUsed,
    externalBytes: external,
    loopP99Ms,
  };
}

let watch: HoldWatch | undefined;

process.on("message", async (message) => {
  if (message === "watch") {
    // What lies about from before is not what is watched.
    globalThis.gc?.();
    watch = new HoldWatch();
    process.send?.("watching");
  }
  if (message === "hold") process.send?.(watch?.end());
  if (message === "usage") process.send?.(usage());
  if (message === "close") {
    await server.close();
    process.exit(0);
  }
});
process.send?.("listening");
