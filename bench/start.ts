// What a user waits for and pays for before anything happens: the program as people start it (bin/holdfast), from its
// start to the open port, `holdfast version`, and the memory of all its processes while nobody asks. Beside each: Node that
// does nothing, in the same run.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort, inFolder, serverEnvironment } from "./processes.js";
import { type Benchmark, type BenchRow, mebibytes, milliseconds, percentile } from "./rows.js";

const program = fileURLToPath(new URL("../../bin/holdfast", import.meta.url));
const times = 7;
const idleSeconds = 30;
const goalStartMs = 400;
const goalVersionMs = 100;
const goalIdleBytes = 90 * 2 ** 20;

const median = (values: readonly number[]): number => percentile(values, 0.5);

function startProgram(folder: string, port: number): ChildProcess {
  return spawn(process.execPath, [program, "serve"], {
    env: serverEnvironment(folder, port),
    stdio: "ignore",
  });
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });

async function untilOpen(port: number, child: ChildProcess): Promise<void> {
  while (!(await isOpen(port))) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

async function end(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

/** The process and those it started. */
function family(pid: number): number[] {
  const children = readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      return Number(text.slice(text.lastIndexOf(")") + 2).split(" ")[1]) === pid;
    } catch {
      return false;
    }
  });
  return [pid, ...children.flatMap((child) => family(Number(child)))];
}

/** Processor time of all threads, also while others take the processor away. */
function processorMs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]),
  );
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6;
}

interface Memory {
  readonly ownBytes: number;
  readonly sharedBytes: number;
}

/**
 * What the processes hold together: pages of their own, and those of programs and libraries, counted once however many of them,
 * or of other programs, share them. Without the store's file: how much of it is in memory is the system's choice.
 */
function memoryOf(pids: readonly number[]): Memory {
  let ownBytes = 0;
  const files = new Map<string, number>();
  for (const pid of pids) {
    const ofThis = new Map<string, number>();
    let path = "";
    let residentBytes = 0;
    for (const line of readFileSync(`/proc/${pid}/smaps`, "utf8").split("\n")) {
      const mapping = /^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+ *(.*)$/.exec(line);
      if (mapping) path = mapping[1] ?? "";
      const [, field, kibibytes] = /^(Rss|Anonymous): +(\d+) kB$/.exec(line) ?? [];
      const bytes = Number(kibibytes) * 1024;
      if (field === "Rss") residentBytes = bytes;
      if (field !== "Anonymous") continue;
      ownBytes += bytes;
      if (!path.endsWith(".mdb")) ofThis.set(path, (ofThis.get(path) ?? 0) + residentBytes - bytes);
    }
    for (const [file, bytes] of ofThis) files.set(file, Math.max(files.get(file) ?? 0, bytes));
  }
  return { ownBytes, sharedBytes: [...files.values()].reduce((sum, one) => sum + one, 0) };
}

/** How long a command takes, and its processor time: the median of some runs, and the mean of all. */
function timed(args: readonly string[]): { readonly ms: number; readonly cpuMs: number } {
  const taken = Array.from({ length: times }, () => {
    const began = performance.now();
    const { status } = spawnSync(process.execPath, [...args], { stdio: "ignore" });
    if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}`);
    return performance.now() - began;
  });
  const loop = `i=0; while [ $i -lt ${times} ]; do "$@" >/dev/null; i=$((i+1)); done; times`;
  const { stdout } = spawnSync("/bin/sh", ["-c", loop, "sh", process.execPath, ...args], { encoding: "utf8" });
  const used = [...(stdout.trim().split("\n").at(-1) ?? "").matchAll(/(\d+)m([\d.]+)s/g)];
  const seconds = used.reduce((sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest), 0);
  return { ms: median(taken), cpuMs: (seconds * 1_000) / times };
}

const figures = ({ ms, cpuMs }: { readonly ms: number; readonly cpuMs: number }): string =>
  `${milliseconds(ms)}, ${milliseconds(cpuMs)} of processor time`;

async function start(bare: { readonly ms: number; readonly cpuMs: number }): Promise<BenchRow> {
  const measured: { ms: number; cpuMs: number }[] = [];
  for (let run = 0; run < times; run++) {
    await inFolder(async (folder) => {
      const port = await freePort();
      const began = performance.now();
      const child = startProgram(folder, port);
      await untilOpen(port, child);
      const ms = performance.now() - began;
      measured.push({ ms, cpuMs: processorMs(child.pid ?? 0) });
      await end(child);
    });
  }
  const ms = median(measured.map((one) => one.ms));
  const cpuMs = median(measured.map((one) => one.cpuMs));
  return {
    goal: "P10",
    work: "start to open port, empty server",
    measured: figures({ ms, cpuMs }),
    limit: `Node that does nothing ${figures(bare)}`,
    ratio: cpuMs / bare.cpuMs,
    target: `<= ${goalStartMs} ms`,
    met: ms <= goalStartMs,
  };
}

function version(bare: { readonly ms: number; readonly cpuMs: number }): BenchRow {
  const measured = timed([program, "version"]);
  return {
    goal: "P10",
    work: "holdfast version",
    measured: figures(measured),
    limit: `Node that does nothing ${figures(bare)}`,
    ratio: measured.cpuMs / bare.cpuMs,
    target: `<= ${goalVersionMs} ms`,
    met: measured.ms <= goalVersionMs,
  };
}

const waitIdle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, idleSeconds * 1_000));

const told = ({ ownBytes, sharedBytes }: Memory): string =>
  `${mebibytes(ownBytes + sharedBytes)} (${mebibytes(ownBytes)} own, ${mebibytes(sharedBytes)} of programs and libraries)`;

async function idle(): Promise<BenchRow> {
  const nothing = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1e6)"], { stdio: "ignore" });
  return inFolder(async (folder) => {
    const port = await freePort();
    const child = startProgram(join(folder, "data"), port);
    try {
      await untilOpen(port, child);
      await waitIdle();
      const pids = family(child.pid ?? 0);
      const measured = memoryOf(pids);
      const bare = memoryOf([nothing.pid ?? 0]);
      const bytes = measured.ownBytes + measured.sharedBytes;
      return {
        goal: "P10",
        work: `memory after ${idleSeconds} idle seconds, ${pids.length} processes, empty server`,
        measured: told(measured),
        limit: `Node that does nothing ${told(bare)}`,
        ratio: bytes / (bare.ownBytes + bare.sharedBytes),
        target: "<= 90 MiB",
        met: bytes <= goalIdleBytes,
      };
    } finally {
      nothing.kill();
      await end(child);
    }
  });
}

export const startBenchmark: Benchmark = {
  name: "start",
  async run() {
    // Processor time and memory are read from /proc.
    if (process.platform !== "linux") return [];
    // First, because a server that runs for a while keeps what was compiled of it: starts are usually not a build's first.
    const memory = await idle();
    const bare = timed(["-e", "0"]);
    return [await start(bare), version(bare), memory];
  },
};
