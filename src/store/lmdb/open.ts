// Opens a durable store in a folder, and brings the file of an earlier version to today's format before anything reads it.

import { randomInt } from "node:crypto";
import { type Clock, systemClock } from "../../base/clock.js";
import { EngineStore } from "../engine/engine.js";
import { type Entry, isListedByTagAndKind, kindsUnderAddress, ofKind, ofTagAndKind } from "../engine/row.js";
import type { Store } from "../port.js";
import type { Database } from "./database.js";
import { DatabaseFiles } from "./database.js";
import { entryBytes, termKeyOf, writeEntry, writeTerm } from "./encoding.js";
import { LmdbBackend } from "./lmdb-backend.js";
import { metaNumber, setMeta } from "./rows.js";

interface LmdbStoreOptions {
  readonly clock?: Clock;
  readonly maxQueuedWorks?: number;
  /** Writes are refused when the disk has less than this free. */
  readonly reserveBytes?: number;
  /** Free space of the disk, in bytes. */
  readonly freeBytes?: () => Promise<number>;
  /** How many events wait in memory before they are indexed on disk. */
  readonly indexAtRows?: number;
  /** To look at a copy without changing a byte of it. One of an earlier format answers by id and by row only. */
  readonly readOnly?: boolean;
  /** Hears what opening takes time for. */
  readonly tell?: (sentence: string) => void;
}

export const defaultReserveBytes = 128 * 2 ** 20;
const defaultIndexAtRows = 5_000;

export async function openLmdbStore(folder: string, options: LmdbStoreOptions = {}): Promise<Store> {
  const files = new DatabaseFiles(folder, options.readOnly);
  const database = files.open();
  const version = metaNumber(database, "version");
  if ((version !== undefined || options.readOnly) && !isKnownFormat(version ?? 0)) {
    await database.close();
    throw new Error(`the store in ${folder} has format ${version}; this program reads format ${formatVersion}`);
  }
  const seed = metaNumber(database, "seed") ?? randomInt(2 ** 32);
  if (version === undefined) {
    await database.write(() => {
      setMeta(database, "version", formatVersion);
      setMeta(database, "seed", seed);
    });
  }
  const { clock = systemClock, maxQueuedWorks, reserveBytes = defaultReserveBytes } = options;
  const backend = new LmdbBackend(database, {
    files,
    seed,
    reserveBytes,
    ...(options.freeBytes && { freeBytes: options.freeBytes }),
    indexAtRows: options.indexAtRows ?? defaultIndexAtRows,
  });
  if (version !== undefined && version < formatVersion && !options.readOnly) {
    options.tell?.(`the store has format ${version}: bringing it to format ${formatVersion}`);
    const rows = await migrate(database, backend, seed);
    options.tell?.(`the store has format ${formatVersion} now, ${rows} events were listed anew`);
  }
  // What the last run left unindexed does not stay in memory until something is written.
  backend.published();
  const store = new EngineStore(backend, backend.layers, { clock, maxQueuedWorks });
  if (!options.readOnly) {
    store.resume();
    store.forgetDaily();
  }
  return store;
}

export const formatVersion = 2;
/** Formats this program can bring up to date. */
const isKnownFormat = (version: number): boolean => version >= 1 && version <= formatVersion;

const rowsAStep = 500;
const nothing = Buffer.alloc(0);

/**
 * Format 2 lists some kinds by tag and kind (engine/row.ts). Written in small transactions; until the last one sets the
 * version, a start that was cut short begins again: entries written twice are the same entries.
 */
export async function migrate(database: Database, backend: LmdbBackend, seed: number): Promise<number> {
  let rows = 0;
  for (const kind of kindsUnderAddress) {
    let after: Entry | undefined;
    for (;;) {
      const entries = backend.scan(ofKind(kind), after, 0, Number.MAX_SAFE_INTEGER, rowsAStep);
      await database.write(() => {
        for (const entry of entries) listByTagAndKind(database, backend, seed, kind, entry);
      });
      rows += entries.length;
      after = entries.at(-1);
      if (entries.length < rowsAStep) break;
    }
  }
  await database.write(() => setMeta(database, "version", formatVersion));
  return rows;
}

function listByTagAndKind(database: Database, backend: LmdbBackend, seed: number, kind: number, entry: Entry): void {
  // Terms are hashed: another kind may share the list.
  const row = backend.row(entry.seq);
  if (row?.kind !== kind) return;
  const key = Buffer.alloc(entryBytes);
  for (const [name, value] of row.tags) {
    if (name === undefined || value === undefined || !isListedByTagAndKind(name, kind)) continue;
    writeTerm(key, termKeyOf(ofTagAndKind(name, value, kind), seed));
    writeEntry(key, entry);
    database.entries.put(key, nothing);
  }
}
