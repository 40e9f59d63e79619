// Opens a durable store in a folder.

import { randomInt } from "node:crypto";
import { type Clock, systemClock, unixSeconds } from "../../base/clock.js";
import { EngineStore } from "../engine/engine.js";
import type { Store } from "../port.js";
import { DatabaseFiles } from "./database.js";
import { LmdbBackend } from "./lmdb-backend.js";
import { metaNumber, setMeta } from "./rows.js";
import { formatVersion, isKnownFormat, upgrade } from "./upgrade.js";

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
  const store = new EngineStore(backend, backend.layers, { clock, maxQueuedWorks });
  if (version !== undefined && version < formatVersion && !options.readOnly) {
    const { tell = () => undefined } = options;
    await upgrade(version, { database, backend, store, seed, nowSeconds: unixSeconds(clock), tell });
  }
  // What the last run left unindexed does not stay in memory until something is written.
  backend.published();
  if (!options.readOnly) {
    store.resume();
    store.forgetDaily();
  }
  return store;
}
