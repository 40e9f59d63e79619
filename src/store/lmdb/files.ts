// The files of an LMDB store: `events-<generation>.mdb`. Compaction writes the next generation beside the current
// one and renames it when it is complete and on disk; whatever happens in between, the highest generation without
// `.part` is whole.

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Database, openDatabase } from "./database.js";

const pattern = /^events-(\d+)\.mdb$/;

async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

export class DatabaseFiles {
  readonly #folder: string;
  readonly #readOnly: boolean;
  #generation: number;

  constructor(folder: string, readOnly = false) {
    this.#folder = folder;
    this.#readOnly = readOnly;
    if (!readOnly) mkdirSync(folder, { recursive: true });
    const names = readdirSync(folder);
    const generations = names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
    this.#generation = Math.max(1, ...generations);
    if (readOnly) return;
    // What a crash during compaction or a snapshot left: half a copy, or the file it was to replace.
    for (const name of names) {
      if (name.endsWith(".part") || name.endsWith(".part-lock")) rmSync(join(folder, name), { recursive: true });
    }
    for (const old of generations) if (old !== this.#generation) this.#delete(old);
  }

  open(): Database {
    return openDatabase(this.#path(this.#generation), this.#readOnly);
  }

  bytes(): number {
    return sizeOf(this.#path(this.#generation));
  }

  /** A copy without holes, opened, in place of the current file. Nothing may be written meanwhile. */
  async compacted(current: Database): Promise<Database> {
    const target = this.#path(this.#generation + 1);
    await current.copyTo(`${target}.part`);
    await syncToDisk(`${target}.part`);
    await rename(`${target}.part`, target);
    await syncToDisk(this.#folder);
    this.#generation++;
    return this.open();
  }

  /**
   * A first generation in another folder. LMDB begins its read transaction before it writes the first byte: when the
   * file has one, the copy's moment is fixed.
   */
  copyInto(folder: string, current: Database): { readonly begun: Promise<void>; readonly done: Promise<void> } {
    mkdirSync(folder, { recursive: true });
    const target = join(folder, "events-1.mdb");
    let isDone = false;
    const done = current.copyTo(target).finally(() => {
      isDone = true;
    });
    const begun = async (): Promise<void> => {
      while (!isDone && sizeOf(target) === 0) await pause(1);
      if (isDone) await done;
    };
    return { begun: begun(), done };
  }

  async discard(old: Database): Promise<void> {
    await old.close();
    this.#delete(this.#generation - 1);
  }

  #path(generation: number): string {
    return join(this.#folder, `events-${generation}.mdb`);
  }

  #delete(generation: number): void {
    rmSync(this.#path(generation), { force: true });
    rmSync(`${this.#path(generation)}-lock`, { force: true });
  }
}
