// What a process has cost so far, asked from outside through Linux's /proc: exact to less than a millisecond for its own
// threads, to ten for what it started and what has ended.

import { readdirSync, readFileSync } from "node:fs";

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

function childrenOf(pid: number): number[] {
  const found: number[] = [];
  for (const name of readdirSync("/proc")) {
    try {
      if (/^\d+$/.test(name) && fieldsOf(name)[1] === pid) found.push(Number(name));
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

/** With everything it started, however deep. */
export function treeMs(pid: number): number {
  let sum = processorMs(pid) + endedChildrenMs(pid);
  for (const child of childrenOf(pid)) {
    try {
      sum += treeMs(child);
    } catch {
      // It has ended: its parent counts it.
    }
  }
  return sum;
}

/** Of programs that this process started and that have ended. */
export const ownChildrenMs = (): number => endedChildrenMs(process.pid);

/** Memory of its own: without mapped files, of which LMDB's is one. */
export function anonymousBytes(pid: number): number {
  return Number(/^RssAnon:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1_024;
}
