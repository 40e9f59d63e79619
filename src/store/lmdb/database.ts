// The LMDB environment: one file, five tables. lmdb-js's own asynchronous batches are used for every write, so that
// the main thread never waits for the disk; a batch's promise resolves after fdatasync. And the files it is in.

import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { link, open as openFile, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Database as LmdbTable, open, type RootDatabase } from "lmdb";
import type { Entry } from "../engine/row.js";
import { memoryBytes, readingAhead, readsAhead } from "./read-ahead.js";
import { entryBytes, readEntry, readTerm, type TermKey, writeTerm } from "./rows.js";

type Table = LmdbTable<Buffer, Uint8Array>;

export interface Database {
  /** sequence → event or removal. Appended to; the truth. */
  readonly log: Table;
  /** Index entries without values. */
  readonly entries: Pick<Table, "put" | "remove">;
  /**
   * Reads up to `limit` index entries from one key to before another. The keys are what the two buffers hold at each
   * call: a filter of 1,000 values makes 1,000 calls, and a range that is made anew costs more than its look-up.
   */
  entriesBetween(start: Buffer, end: Buffer): (limit: number) => Entry[];
  /** How many index entries there are. */
  entryCount(): number;
  /**
   * Tells of up to `most` terms of the type that `from` begins with, from that key on; answers the key to go on from, or
   * undefined at the end.
   */
  termsFrom(from: Buffer, most: number, found: (term: TermKey) => void): Buffer | undefined;
  /** id → sequence. */
  readonly ids: Table;
  /** digest of an address → sequence. */
  readonly addresses: Table;
  /** table number, key → JSON text. */
  readonly rows: Table;
  /** All writes of `work` in one transaction; resolves when it is on disk. */
  write(work: () => void): Promise<void>;
  copyTo(path: string): Promise<void>;
  close(): Promise<void>;
}

export function openDatabase(path: string, readOnly = false): Database {
  const fileBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  // lmdb-js documents it, and its types lack it.
  const reading = { noReadAhead: !readsAhead(fileBytes, memoryBytes()) };
  const root: RootDatabase<Buffer, Uint8Array> = open({
    ...reading,
    path,
    readOnly,
    noSubdir: true,
    maxDbs: 8,
    overlappingSync: false,
    // With it, lmdb-js makes a promise of its own for every turn, whose rejection nobody could handle.
    eventTurnBatching: false,
    encoding: "binary",
    keyEncoding: "binary",
  });
  const table = (name: string): Table => root.openDB(name, { encoding: "binary", keyEncoding: "binary" });
  // The same binary keys; but what is read of them becomes an entry at once, without a buffer between.
  const entries = root.openDB<Buffer, Uint8Array>("entries", entryOptions);
  // And once more, for who wants to know the terms.
  const terms = root.openDB<Buffer, Uint8Array>("entries", termOptions);
  return {
    log: table("log"),
    entries,
    entriesBetween(start, end) {
      const range = entries.getKeys({ start, end }) as Iterable<unknown> as Iterable<Entry>;
      return (limit) => {
        const found: Entry[] = [];
        for (const entry of range) if (found.push(entry) === limit) break;
        return found;
      };
    },
    entryCount: () => (entries.getStats() as { readonly entryCount: number }).entryCount,
    termsFrom: (from, most, found) => termsFrom(terms, from, most, found),
    ids: table("ids"),
    addresses: table("addresses"),
    rows: table("rows"),
    write: (work) => writeBatch(root, work),
    copyTo(target) {
      const copy = (): Promise<void> => root.backup(target, true);
      return reading.noReadAhead ? readingAhead(path, copy) : copy();
    },
    close: () => root.close(),
  };
}

function writeKey(key: Uint8Array, target: Uint8Array, start: number): number {
  target.set(key, start);
  return start + key.length;
}

const entryOptions = { encoding: "binary", keyEncoder: { writeKey, readKey: readEntry } } as const;
const termOptions = { encoding: "binary", keyEncoder: { writeKey, readKey: readTerm } } as const;

/** Entries of one term that are read before the rest of them is passed over. */
const passedOverAfter = 16;

function termsFrom(table: Table, from: Buffer, most: number, found: (term: TermKey) => void): Buffer | undefined {
  const type = from[0] as number;
  const range = table.getKeys({ start: from, end: Buffer.of(type + 1) }) as Iterable<unknown> as Iterable<TermKey>;
  let last: TermKey | undefined;
  let same = 0;
  let told = 0;
  for (const term of range) {
    if (last && term.high === last.high && term.low === last.low) {
      if (++same < passedOverAfter) continue;
      break;
    }
    if (told === most) break;
    found(term);
    told++;
    same = 0;
    last = term;
  }
  if (!last || (told < most && same < passedOverAfter)) return undefined;
  // Behind all entries of the last term: no entry is as long.
  const behind = Buffer.alloc(entryBytes + 1, 0xff);
  writeTerm(behind, last);
  return behind;
}

/** lmdb-js rejects a failed batch with an error that carries a second promise with the reason. */
async function writeBatch(root: RootDatabase<Buffer, Uint8Array>, work: () => void): Promise<void> {
  try {
    await root.batch(work);
  } catch (error) {
    const reason = (error as { commitError?: Promise<unknown> }).commitError;
    if (!reason) throw error;
    await reason;
    throw error;
  }
}

/** Input/output errors and "no space left": what a full disk shows as. */
export function isDiskFull(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    code === 5 ||
    code === 28 ||
    code === "EIO" ||
    code === "ENOSPC" ||
    /no space left|input\/output error/i.test(String(message))
  );
}

const pattern = /^events-(\d+)\.mdb$/;

async function syncToDisk(path: string): Promise<void> {
  const handle = await openFile(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

const lookAtCopyMs = 200;

/**
 * The files of an LMDB store: `events-<generation>.mdb`. Compaction writes the next generation beside the current one
 * and renames it when it is complete and on disk; whatever happens in between, the highest generation without `.part`
 * is whole.
 */
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

  /** What the disk has left. */
  async freeBytes(): Promise<number> {
    const { bavail, bsize } = await statfs(this.#folder);
    return bavail * bsize;
  }

  /** A copy without holes, opened, in place of the current file. Nothing may be written meanwhile. */
  async compacted(current: Database, progress?: (bytes: number) => void): Promise<Database> {
    const target = this.#path(this.#generation + 1);
    // LMDB writes in a thread of its own and tells nothing: the file does.
    const looking = progress && setInterval(() => progress(sizeOf(`${target}.part`)), lookAtCopyMs);
    await current.copyTo(`${target}.part`).finally(() => clearInterval(looking));
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

  /**
   * A copy of the file beside it, under a name no generation has. It gets that name when it is complete and on disk, in
   * place of one that was there before.
   */
  async copyBeside(name: string, current: Database): Promise<string> {
    const target = join(this.#folder, name);
    await current.copyTo(`${target}.part`);
    await syncToDisk(`${target}.part`);
    await rename(`${target}.part`, target);
    await syncToDisk(this.#folder);
    return target;
  }

  /** That file takes the place of the current one, which stays under a name no generation has. */
  async replaceBy(file: string, keptAs: string): Promise<void> {
    const kept = join(this.#folder, keptAs);
    await rm(kept, { force: true });
    await link(this.#path(this.#generation), kept);
    await syncToDisk(file);
    await rename(file, this.#path(this.#generation + 1));
    await syncToDisk(this.#folder);
    this.#generation++;
    this.#delete(this.#generation - 1);
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
