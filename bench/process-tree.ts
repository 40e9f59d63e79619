// What a whole server uses, seen from outside: the process that was started and every process it started. Linux only.

import { readdirSync, readFileSync } from "node:fs";

const ticksASecond = 100;

interface Told {
  readonly parent: number;
  /** Of the process and of all children that have ended. */
  readonly cpuMs: number;
}

/** undefined: it is gone. */
function told(pid: number): Told | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return { parent: Number(fields[1]), cpuMs: (ticks * 1_000) / ticksASecond };
  } catch {
    return undefined;
  }
}

function treeOf(root: number): ReadonlyMap<number, Told> {
  const all = new Map<number, Told>();
  for (const name of readdirSync("/proc")) {
    const one = /^\d+$/.test(name) ? told(Number(name)) : undefined;
    if (one) all.set(Number(name), one);
  }
  const isBelow = (pid: number): boolean => {
    if (pid === root) return true;
    const parent = all.get(pid)?.parent ?? 0;
    return parent > 1 && isBelow(parent);
  };
  return new Map([...all].filter(([pid]) => isBelow(pid)));
}

export function treeCpuMs(root: number): number {
  let sum = 0;
  for (const { cpuMs } of treeOf(root).values()) sum += cpuMs;
  return sum;
}

export interface TreeMemory {
  readonly processes: number;
  readonly rssBytes: number;
  /** What several processes share counts once. */
  readonly ownBytes: number;
}

export function treeMemory(root: number): TreeMemory {
  const pids = [...treeOf(root).keys()];
  let rssBytes = 0;
  let ownBytes = 0;
  for (const pid of pids) {
    const text = textOf(`/proc/${pid}/smaps_rollup`);
    rssBytes += kibibytes(text, "Rss") * 1_024;
    ownBytes += kibibytes(text, "Pss") * 1_024;
  }
  return { processes: pids.length, rssBytes, ownBytes };
}

const kibibytes = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0);

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
