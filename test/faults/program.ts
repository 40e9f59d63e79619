// The real server, in which faults can be ordered from outside (orders.ts): by messages over Node's channel, or one
// order as an argument, obeyed at SIGUSR2.
//   node program.js serve [order as JSON]
// The product knows nothing of it: methods of its classes, two functions of Node and the clock's object are wrapped
// here before the server starts. Without an order every wrapper only passes on.

import { readFileSync } from "node:fs";
import fsPromises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import type { WorkerOptions } from "node:worker_threads";
import workerThreads from "node:worker_threads";
import { systemClock } from "../../src/base/clock.js";
import { type JobRequest, Launcher } from "../../src/git/launcher.js";
import { Git } from "../../src/git/run.js";
import { LmdbBackend } from "../../src/store/lmdb/lmdb-backend.js";
import {
  armedText,
  type MethodPoint,
  methodPoints,
  type Order,
  renamePoints,
  struckText,
  verbPoint,
} from "./orders.js";

type Method = (...args: never[]) => unknown;

const say = (text: string): void => void process.stderr.write(`${text}\n`);

// ---- striking ----------------------------------------------------------------------------------------------------

let strike: Extract<Order, { type: "strike" }> | undefined;
let passes = 0;

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
  } catch {
    return "";
  }
};

const launchers = (): number[] => childrenOf(process.pid).filter((pid) => commandOf(pid).includes("holdfast-launcher"));

function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

/** Whether anybody was there to be hit. */
function hit({ target, signal: name }: NonNullable<typeof strike>): boolean {
  if (target === "server") return signal(process.pid, name);
  if (target === "launcher")
    return launchers()
      .map((pid) => signal(pid, name))
      .includes(true);
  // Each git process leads a group of its own, with the children it may have. One that is still the launcher's copy,
  // between fork and exec, is not git yet.
  const groups = launchers()
    .flatMap(childrenOf)
    .filter((pid) => !commandOf(pid).includes("holdfast-launcher"));
  return groups.map((pid) => signal(-pid, name)).includes(true);
}

function reached(point: string): void {
  if (strike?.point !== point || ++passes < strike.pass) return;
  if (hit(strike)) {
    say(`${struckText}: ${point}`);
    strike = undefined;
  }
}

function watch(name: string, { of, method, when }: MethodPoint): void {
  const methods = of as Record<string, Method>;
  const original = methods[method];
  if (!original) throw new Error(`there is no ${method}`);
  methods[method] = function (this: unknown, ...args: never[]): unknown {
    if (when === "before") reached(name);
    const result = original.apply(this, args);
    if (when === "before") return result;
    if (result instanceof Promise) return result.finally(() => reached(name));
    reached(name);
    return result;
  };
}

for (const [name, point] of Object.entries(methodPoints)) watch(name, point);

const rename = fsPromises.rename;
fsPromises.rename = async (from, to) => {
  await rename(from, to);
  for (const [name, pattern] of Object.entries(renamePoints)) if (pattern.test(String(to))) reached(name);
};

const link = fsPromises.link;
fsPromises.link = async (from, to) => {
  await link(from, to);
  for (const [name, pattern] of Object.entries(renamePoints)) if (pattern.test(String(to))) reached(name);
};

const startGit = Git.prototype.start;
Git.prototype.start = async function (args, call) {
  const job = await startGit.call(this, args, call);
  reached(verbPoint(args[0]));
  return job;
};

// ---- other faults ------------------------------------------------------------------------------------------------

let wallClockMs = Number.POSITIVE_INFINITY;
const running = new Set<Promise<unknown>>();
const launch = Launcher.prototype.start;
Launcher.prototype.start = function (request: JobRequest) {
  const limits = { ...request.limits, wallClockMs: Math.min(request.limits.wallClockMs, wallClockMs) };
  const job = launch.call(this, { ...request, limits });
  const over = job.then(({ exit }) => exit).catch(() => undefined);
  running.add(over);
  void over.then(() => running.delete(over));
  return job;
};

let store = { stallMs: 0, failing: 0 };
const commit = LmdbBackend.prototype.commit;
LmdbBackend.prototype.commit = async function (change) {
  if (store.stallMs > 0) await new Promise((resolve) => setTimeout(resolve, store.stallMs));
  if (store.failing > 0) {
    store.failing--;
    say(`${struckText}: a commit failed`);
    throw new Error("planted: the disk said no");
  }
  return commit.call(this, change);
};

let jumpMs = 0;
const { nowMs } = systemClock;
Object.assign(systemClock, { nowMs: () => nowMs() + jumpMs });

const threads = new Set<workerThreads.Worker>();
workerThreads.Worker = class extends workerThreads.Worker {
  constructor(module: string | URL, options?: WorkerOptions) {
    super(module, options);
    threads.add(this);
    this.once("exit", () => threads.delete(this));
  }
};
syncBuiltinESMExports();

function obey(order: Order): void {
  switch (order.type) {
    case "strike":
      passes = 0;
      strike = order;
      break;
    case "disarm":
      strike = undefined;
      break;
    case "hurry":
      ({ wallClockMs } = order);
      // Those that run already have more time: a signal must not meet one of them.
      void Promise.all(running).then(() => say(`${armedText}: ${order.type}`));
      return;
    case "store":
      store = { ...order };
      break;
    case "clock":
      ({ jumpMs } = order);
      break;
    case "crash worker":
      for (const thread of threads) void thread.terminate();
      break;
    case "reject":
      // As a bug would: a promise nobody waits for.
      void Promise.reject(new Error("planted fault"));
  }
  say(`${armedText}: ${order.type}`);
}

process.on("message", (order: Order) => obey(order));
const [given] = process.argv.splice(3);
if (given !== undefined) process.once("SIGUSR2", () => obey(JSON.parse(given) as Order));
// A server that was asked to stop must be able to end.
process.channel?.unref();

await import("../../src/main.js");
