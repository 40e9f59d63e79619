// What a server holds, for bounds on what an attack may cost. Not its resident size: that counts the pages of the mapped
// database, which the system takes back as it likes, and what V8 has yet to collect, which is more on a busy machine.

import type { ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { collectGarbage } from "../../src/base/collect-garbage.js";

export const mebibyte = 1 << 20;
const askedAgainMs = 800;
/** A growth this small is taken for held, garbage and all: collecting costs the server more than most attacks do. */
const countsAsHeldBytes = 16 * mebibyte;

/** Of this process: objects and buffers that something still refers to. */
export function heldHere(): number {
  // Buffers are let go of by the first; that their memory is free is counted by the second.
  collectGarbage();
  collectGarbage();
  return usedHere();
}

/** With the garbage: never less than is held, and asking costs nothing. */
export function usedHere(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Of a server that `startChild` started; undefined when it has ended. */
export const heldBy = (child: ChildProcess): Promise<number | undefined> => askedOf(child, "held");

function askedOf(child: ChildProcess, what: "held" | "used"): Promise<number | undefined> {
  return new Promise((resolve) => {
    const settle = (bytes?: number): void => {
      child.off("message", heard).off("exit", gone);
      resolve(bytes);
    };
    const heard = (message: unknown): void => {
      const answer = message as { readonly what: string; readonly bytes: number };
      if (answer.what === what) settle(answer.bytes);
    };
    const gone = (): void => settle();
    child.on("message", heard).on("exit", gone);
    if (!child.connected) return gone();
    child.send(what, (error) => error && gone());
  });
}

/**
 * How much more a server holds than before. What it uses with its garbage is never less than what it holds: when that is
 * within the bound nothing needs to be collected.
 */
export async function heldMore(child: ChildProcess, heldBefore: number, enoughBytes: number): Promise<number> {
  const more = ((await askedOf(child, "used")) ?? 0) - heldBefore;
  return more < enoughBytes ? more : ((await heldBy(child)) ?? 0) - heldBefore;
}

/** Memory of the process that no file backs: other threads' and native code's too, and not yet collected garbage. */
export const ownBytes = (pid: number): number => statusBytes(pid, "RssAnon");

export function statusBytes(pid: number, field: string): number {
  try {
    return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** By how much a process grew at most. */
export interface Growth {
  heldBytes: number;
  ownBytes: number;
}

/** Looks again and again while the work runs, and once more at its end. */
export async function growthDuring<T>(child: ChildProcess, work: () => Promise<T>): Promise<[result: T, Growth]> {
  const pid = child.pid ?? 0;
  const heldBefore = (await heldBy(child)) ?? 0;
  const ownBefore = ownBytes(pid);
  const growth: Growth = { heldBytes: 0, ownBytes: 0 };
  const look = async (): Promise<void> => {
    growth.ownBytes = Math.max(growth.ownBytes, ownBytes(pid) - ownBefore);
    growth.heldBytes = Math.max(growth.heldBytes, await heldMore(child, heldBefore, countsAsHeldBytes));
  };
  let isOver = false;
  let wake = (): void => undefined;
  const looking = (async () => {
    while (!isOver) {
      await look();
      await new Promise<void>((resolve) => {
        wake = resolve;
        setTimeout(resolve, askedAgainMs).unref();
      });
    }
  })();
  try {
    const result = await work();
    await look();
    return [result, growth];
  } finally {
    isOver = true;
    wake();
    await looking;
  }
}
