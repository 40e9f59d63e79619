// What a process, or it and everything it started, has cost so far, asked from outside through Linux's /proc: exact to
// less than a millisecond for its own threads, to ten for what has ended. git's processes live for moments only.

import { existsSync, readdirSync, readFileSync } from "node:fs";

export const canTellCosts = existsSync("/proc/self/stat");

const tickMs = 10;

function fieldsOf(pid: number | string): number[] {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  return text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
}

/** Of all threads that are alive. */
export function processorMs(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  }
  return nanoseconds / 1e6;
}

/** Of what a process started and waited for. */
function endedChildrenMs(pid: number): number {
  const fields = fieldsOf(pid);
  return ((fields[13] ?? 0) + (fields[14] ?? 0)) * tickMs;
}

/** The process and what it started, however deep. */
function treeOf(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    try {
      const parent = /^\d+$/.test(name) ? fieldsOf(name)[1] : undefined;
      if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [root];
  for (const pid of found) found.push(...(children.get(pid) ?? []));
  return found;
}

export function treeMs(root: number): number {
  let sum = 0;
  for (const pid of treeOf(root)) {
    try {
      sum += processorMs(pid) + endedChildrenMs(pid);
    } catch (error) {
      // A child that has ended is counted by its parent.
      if (pid === root) throw error;
    }
  }
  return sum;
}

/** Of programs that this process started and that have ended. */
export const ownChildrenMs = (): number => endedChildrenMs(process.pid);

/** Memory of its own: without mapped files, of which LMDB's is one. */
export function anonymousBytes(pid: number): number {
  return kibibytes(readFileSync(`/proc/${pid}/status`, "utf8"), "RssAnon") * 1_024;
}

export interface TreeMemory {
  readonly processes: number;
  readonly rssBytes: number;
  /** What several processes share counts once. */
  readonly ownBytes: number;
}

export function treeMemory(root: number): TreeMemory {
  const pids = treeOf(root);
  let rssBytes = 0;
  let ownBytes = 0;
  for (const pid of pids) {
    const text = readOrNothing(`/proc/${pid}/smaps_rollup`);
    rssBytes += kibibytes(text, "Rss") * 1_024;
    ownBytes += kibibytes(text, "Pss") * 1_024;
  }
  return { processes: pids.length, rssBytes, ownBytes };
}

const kibibytes = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
