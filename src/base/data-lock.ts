// One process at a time may open the data directory: a server, or a verb that works offline. LMDB would let several
// read, but opening may finish interrupted work and rebuild indexes, so even reading verbs take the lock. Beside a running
// server verbs ask it instead; those that cannot say so and end. The memory backend has no directory and takes none.

import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const lockFile = "holdfast.lock";

type DataLock = { readonly ok: true; release(): void } | { readonly ok: false; readonly holderPid: number };

interface Holder {
  readonly pid: number;
  /** When that process began, so that a later process with the same number is not taken for it. */
  readonly began: string;
}

export function lockDataDirectory(directory: string): DataLock {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, lockFile);
  const own = `${JSON.stringify({ pid: process.pid, began: processBegan(process.pid) } satisfies Holder)}\n`;
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, own);
  try {
    for (;;) {
      try {
        linkSync(draft, path);
        return { ok: true, release: () => releaseLock(path, own) };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      }
      const text = readIfThere(path);
      if (text === undefined) continue;
      const holder = parseHolder(text);
      if (holder && isRunning(holder)) return { ok: false, holderPid: holder.pid };
      discardStale(path, text, `${draft}.stale`);
    }
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Moves a dead holder's lock away; if another process was quicker and this is its lock, puts it back. */
function discardStale(path: string, staleText: string, aside: string): void {
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (readIfThere(aside) !== staleText) {
    try {
      linkSync(aside, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
  rmSync(aside, { force: true });
}

function releaseLock(path: string, own: string): void {
  if (readIfThere(path) === own) rmSync(path, { force: true });
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function parseHolder(text: string): Holder | undefined {
  try {
    const { pid, began } = JSON.parse(text) as Record<string, unknown>;
    return typeof pid === "number" && typeof began === "string" ? { pid, began } : undefined;
  } catch {
    return undefined;
  }
}

function isRunning(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return false;
  }
  return processBegan(holder.pid) === holder.began;
}

/** Start time in clock ticks since boot, with the boot's id; empty where the system does not tell. */
function processBegan(pid: number): string {
  const stat = readProc(`/proc/${pid}/stat`);
  const boot = readProc("/proc/sys/kernel/random/boot_id").trim();
  // The name in parentheses may hold spaces; field 22 counts from behind it.
  const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  return ticks === "" ? "" : `${boot}/${ticks}`;
}

function readProc(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
