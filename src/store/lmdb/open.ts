// Opens a durable store in a folder.

import { randomInt } from "node:crypto";
import { type Clock, systemClock, unixSeconds } from "../../base/clock.js";
import type { Applied, EngineTable } from "../engine/backend.js";
import { EngineStore } from "../engine/engine.js";
import type { Order, View } from "../engine/view.js";
import { isLocalRow, type Store } from "../port.js";
import { type Database, DatabaseFiles } from "./database.js";
import { LmdbBackend } from "./lmdb-backend.js";
import { appliedIn, forgetApplied, metaNumber, rowsInRange, setApplied, setMeta, setRowText } from "./rows.js";
import { formatVersion, isKnownFormat, StoreRefusal, upgrade } from "./upgrade.js";

interface LmdbStoreOptions {
  readonly clock?: Clock;
  readonly maxQueuedWorks?: number;
  /** Writes are refused when the disk has less than this free. */
  readonly reserveBytes?: number;
  /** Free space of the disk, in bytes. */
  readonly freeBytes?: () => Promise<number>;
  /** How many events wait in memory before they are indexed on disk. */
  readonly indexAtRows?: number;
  /** Look-ups of tags in vain, after which the store remembers which tags there are. */
  readonly rememberTagsAfter?: number;
  /** To look at a copy without changing a byte of it. One of an earlier format answers by id and by row only. */
  readonly readOnly?: boolean;
  /** Hears what opening takes time for. */
  readonly tell?: (sentence: string) => void;
}

/** Of a view of a log that several machines share. */
interface SharedView {
  readonly order: (view: View) => Order;
  /** The row of the log that a new view begins behind. */
  readonly begins: Applied;
}

export const defaultReserveBytes = 128 * 2 ** 20;
const defaultIndexAtRows = 5_000;
const defaultRememberTagsAfter = 2_000;

export const openLmdbStore = (folder: string, options: LmdbStoreOptions = {}): Promise<Store> =>
  openLmdbEngine(folder, options);

/** What lies in a folder, before it is opened as a view. */
export async function lookIntoFolder(
  folder: string,
): Promise<{ readonly applied: Applied | undefined; readonly isEmpty: boolean; readonly isOfThisFormat: boolean }> {
  const files = new DatabaseFiles(folder);
  if (files.bytes() === 0) return { applied: undefined, isEmpty: true, isOfThisFormat: true };
  const database = files.open();
  try {
    const isEmpty = [...database.log.getKeys({ limit: 1 })].length === 0;
    const isOfThisFormat = (metaNumber(database, "version") ?? formatVersion) === formatVersion;
    return { applied: appliedIn(database), isEmpty, isOfThisFormat };
  } finally {
    await database.close();
  }
}

/** What spoke of another machine's files says nothing about this one's. */
export const forgetLocalRows = (folder: string): Promise<void> => changing(folder, withoutLocalRows);

/** The store in the folder becomes a view of a shared log, as it is behind that row. */
export const becomeView = (folder: string, applied: Applied): Promise<void> =>
  changing(folder, async (database) => {
    await withoutLocalRows(database);
    await database.write(() => setApplied(database, applied));
  });

/** A view becomes the store of a server that is alone: its packs are those in its directories. */
export const stopBeingView = (folder: string): Promise<void> =>
  changing(folder, async (database) => {
    await withoutRows(database, "packs", () => true);
    await database.write(() => forgetApplied(database));
  });

async function withoutLocalRows(database: Database): Promise<void> {
  for (const table of ["aligned", "meta"] as const) await withoutRows(database, table, (key) => isLocalRow(table, key));
}

const rowsAtOnce = 10_000;

async function withoutRows(database: Database, table: EngineTable, goes: (key: string) => boolean): Promise<void> {
  for (let after: string | undefined; ; ) {
    const rows = rowsInRange(database, table, { limit: rowsAtOnce, ...(after !== undefined && { after }) });
    await database.write(() => {
      for (const [key] of rows) if (goes(key)) setRowText(database, table, key, undefined);
    });
    if (rows.length < rowsAtOnce) return;
    after = rows.at(-1)?.[0];
  }
}

async function changing(folder: string, work: (database: Database) => Promise<void>): Promise<void> {
  const database = new DatabaseFiles(folder).open();
  try {
    await work(database);
  } finally {
    await database.close();
  }
}

export async function openLmdbEngine(
  folder: string,
  options: LmdbStoreOptions = {},
  shared?: SharedView,
): Promise<EngineStore> {
  const files = new DatabaseFiles(folder, options.readOnly);
  const database = files.open();
  const version = metaNumber(database, "version");
  if ((version !== undefined || options.readOnly) && !isKnownFormat(version ?? 0)) {
    await database.close();
    throw new StoreRefusal(
      `the store in ${folder} has format ${version}; this program reads format ${formatVersion} and earlier ones: install the version of Holdfast that wrote it, or restore a backup that this version can read`,
    );
  }
  if (!shared && !options.readOnly && appliedIn(database)) {
    await database.close();
    throw new StoreRefusal(
      `${folder} belongs to a machine of a cluster: set NGIT_DATABASE_BACKEND=postgres, or make it a server of its own with \`holdfast cluster leave\``,
    );
  }
  const seed = metaNumber(database, "seed") ?? randomInt(2 ** 32);
  if (version === undefined) {
    await database.write(() => {
      setMeta(database, "version", formatVersion);
      setMeta(database, "seed", seed);
      if (shared) setApplied(database, shared.begins);
    });
  }
  const { clock = systemClock, maxQueuedWorks, reserveBytes = defaultReserveBytes } = options;
  const backend = new LmdbBackend(database, {
    files,
    seed,
    reserveBytes,
    ...(options.freeBytes && { freeBytes: options.freeBytes }),
    indexAtRows: options.indexAtRows ?? defaultIndexAtRows,
    rememberTagsAfter: options.rememberTagsAfter ?? defaultRememberTagsAfter,
  });
  const store = new EngineStore(backend, backend.layers, { clock, maxQueuedWorks, order: shared?.order });
  if (version !== undefined && version < formatVersion && !options.readOnly) {
    const { tell = () => undefined } = options;
    const freeBytes = options.freeBytes ?? (() => files.freeBytes());
    const parts = {
      files,
      reserveBytes,
      freeBytes,
      database,
      backend,
      store,
      seed,
      nowSeconds: unixSeconds(clock),
      tell,
    };
    try {
      await upgrade(version, parts);
    } catch (error) {
      if (error instanceof StoreRefusal) await store.close();
      throw error;
    }
  }
  // What the last run left unindexed does not stay in memory until something is written.
  backend.published();
  if (!options.readOnly) {
    store.resume();
    store.forgetDaily();
  }
  return store;
}
