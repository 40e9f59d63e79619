// The LMDB environment: one file, five tables. lmdb-js's own asynchronous batches are used for every write, so that
// the main thread never waits for the disk; a batch's promise resolves after fdatasync.

import { type Database as LmdbTable, open, type RootDatabase } from "lmdb";
import type { Entry } from "../engine/order.js";
import { readEntry } from "./keys.js";

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
  const root: RootDatabase<Buffer, Uint8Array> = open({
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
    ids: table("ids"),
    addresses: table("addresses"),
    rows: table("rows"),
    write: (work) => writeBatch(root, work),
    copyTo: (target) => root.backup(target, true),
    close: () => root.close(),
  };
}

const entryOptions = {
  encoding: "binary",
  keyEncoder: {
    writeKey(key: Uint8Array, target: Uint8Array, start: number): number {
      target.set(key, start);
      return start + key.length;
    },
    readKey: readEntry,
  },
} as const;

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
