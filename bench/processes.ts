// Starts the programs a benchmark needs and asks them what they used.

import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { once } from "node:events";
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Hold } from "./thread-time.js";

export interface Usage {
  /** Of all threads. */
  readonly cpuMs: number;
  /** Of the thread that runs the event loop; undefined where the system does not say. */
  readonly mainThreadMs: number | undefined;
  readonly rssBytes: number;
  readonly heapBytes: number;
  readonly externalBytes: number;
  /** Of the event loop's delay since the last time it was asked for, with the 10 ms at which it is looked at. */
  readonly loopP99Ms: number;
}

export interface BenchServer {
  readonly port: number;
  readonly pid: number;
  /** From starting the process to its listening. */
  readonly startMs: number;
  usage(): Promise<Usage>;
  /** How long its event loop stood still at most while something was done. */
  holdDuring(work: () => Promise<unknown>): Promise<Hold>;
  close(): Promise<void>;
}

/** Per-address limits are raised: everything here comes from one address. */
export const raisedLimits = {
  NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: "100000000",
  NGIT_EVENTS_PER_MINUTE_PER_IP: "100000000",
  NGIT_RECEIVE_PER_SECOND_PER_IP_BYTES: "1GiB",
  NGIT_EVENTS_PER_DAY_PER_AUTHOR_BYTES: "1TiB",
  NGIT_EVENTS_PER_DAY_PER_REPOSITORY_BYTES: "1TiB",
  NGIT_EVENTS_PER_DAY_PER_IP_BYTES: "1TiB",
  NGIT_MAX_CONNECTIONS_PER_IP: "100000",
  NGIT_MAX_CONNECTIONS: "100000",
};

export const programPath = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url));

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

const programs = new Set<ChildProcess>();
const folders = new Set<string>();
let isWatching = false;

/** A benchmark that is told to end takes with it what it started and made. */
function endTogether(): void {
  if (isWatching) return;
  isWatching = true;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  process.once("exit", () => {
    for (const program of programs) program.kill("SIGKILL");
    for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
}

/** A program of a benchmark, which begins with ends-with-parent.js and so does not outlive it. */
export function startProgram(name: string, options: ForkOptions = {}): ChildProcess {
  endTogether();
  const program = fork(programPath(name), [], options);
  programs.add(program);
  program.once("exit", () => programs.delete(program));
  return program;
}

export const nextMessage = <T>(child: ChildProcess): Promise<T> =>
  new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`the program ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message as T);
    });
  });

/** A folder: the server leaves its CPU profile there. */
const profiling = process.env.BENCH_PROF;
/** Flags for the server's Node, to try one out. */
const serverFlags = (process.env.BENCH_NODE_FLAGS ?? "").split(" ").filter((flag) => flag !== "");

/** Nothing of the caller's own environment reaches a server that is measured. */
export const serverEnvironment = (folder: string, port: number): Record<string, string> => ({
  PATH: process.env.PATH ?? "",
  HOME: "/nonexistent",
  NGIT_DATA_PATH: folder,
  NGIT_BIND_ADDRESS: `127.0.0.1:${port}`,
  NGIT_DOMAIN: "bench.example",
});

export async function startBenchServer(
  folder: string,
  settings: Readonly<Record<string, string>> = {},
  port?: number,
): Promise<BenchServer> {
  return start(folder, settings, port ?? (await freePort()));
}

async function start(folder: string, settings: Readonly<Record<string, string>>, port: number): Promise<BenchServer> {
  const began = performance.now();
  const child = startProgram("server-program", {
    env: { ...serverEnvironment(folder, port), ...raisedLimits, ...settings },
    execArgv: ["--expose-gc", ...serverFlags, ...(profiling ? ["--cpu-prof", `--cpu-prof-dir=${profiling}`] : [])],
  });
  await nextMessage(child);
  return {
    port,
    pid: child.pid ?? 0,
    startMs: performance.now() - began,
    usage() {
      const answer = nextMessage<Usage>(child);
      child.send("usage");
      return answer;
    },
    async holdDuring(work) {
      const begun = nextMessage(child);
      child.send("watch");
      await begun;
      await work();
      const answer = nextMessage<Hold>(child);
      child.send("hold");
      return answer;
    },
    async close() {
      const ended = once(child, "exit");
      child.send("close");
      await ended;
    },
  };
}

export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  endTogether();
  const folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
  folders.add(folder);
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    folders.delete(folder);
  }
}

/** How many small durable writes the disk takes in a second: what one event at a time is bound by. */
export function syncsPerSecond(folder: string, count = 200): number {
  const file = openSync(join(folder, "sync-rate"), "w");
  const page = Buffer.alloc(4_096, 1);
  const began = performance.now();
  for (let index = 0; index < count; index++) {
    writeSync(file, page, 0, page.length, index * page.length);
    fdatasyncSync(file);
  }
  const ms = performance.now() - began;
  closeSync(file);
  return (count / ms) * 1_000;
}
