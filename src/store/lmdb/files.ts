// The files of an LMDB store: `events-<generation>.mdb`. Compaction writes the next generation beside the current
// one and renames it when it is complete and on disk; whatever happens in between, the highest generation without
// `.part` is whole.

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { open, rename } from "node:fs/promises";
import { join } from "node:path";
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

export class DatabaseFiles {
  readonly #folder: string;
  #generation: number;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    const names = readdirSync(folder);
    const generations = names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
    this.#generation = Math.max(1, ...generations);
    // What a crash during compaction left: half a copy, or the file it was to replace.
    for (const name of names) {
      if (name.endsWith(".part") || name.endsWith(".part-lock")) rmSync(join(folder, name));
    }
    for (const old of generations) if (old !== this.#generation) this.#delete(old);
  }

  open(): Database {
    return openDatabase(this.#path(this.#generation));
  }

  bytes(): number {
    return statSync(this.#path(this.#generation), { throwIfNoEntry: false })?.size ?? 0;
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
