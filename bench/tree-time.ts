// What a process and everything it started has used of the processors. What has ended counts too: git's processes live for
// moments only. Linux says it in hundredths of a second.

import { existsSync, readdirSync, readFileSync } from "node:fs";

export const canTellTreeTime = existsSync("/proc/self/stat");

interface ProcessTime {
  readonly parent: number;
  readonly ms: number;
}

function timeOf(pid: string): ProcessTime | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    // Its own time and that of its ended children, each as a program and in the kernel.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { parent: Number(fields[1]), ms: ticks * 10 };
  } catch {
    return undefined;
  }
}

export function treeMs(root: number): number {
  const all = new Map<number, ProcessTime>();
  for (const name of readdirSync("/proc")) {
    const time = /^\d+$/.test(name) ? timeOf(name) : undefined;
    if (time) all.set(Number(name), time);
  }
  const isBelow = (pid: number): boolean => {
    for (let at = pid; at > 1; at = all.get(at)?.parent ?? 0) if (at === root) return true;
    return false;
  };
  let sum = 0;
  for (const [pid, { ms }] of all) if (isBelow(pid)) sum += ms;
  return sum;
}
