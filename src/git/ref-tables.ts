// What is known in memory of the refs of all repositories. RefTables: those that were looked at lately, bounded by the
// number of refs in them. A table is what the rows say (catalogue/refs.ts) at one version. It never changes in place: a
// change is a new table with a higher generation, so that whoever holds one sees one moment.
// RefAlignment: those whose files are to be synced.

import type { Clock } from "../base/clock.js";
import { type RefValue, recordAligned } from "../catalogue/refs.js";
import type { ObjectFormat, RefName } from "../nostr/nip34.js";
import { compareUtf8 } from "../store/engine/reading.js";
import type { Store, Transaction } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";

export const unbornBranch = "refs/heads/master";

/** A repository's refs at one moment, sorted by name (by bytes, as git sorts). Never changed in place. */
export interface RefTable {
  readonly refs: ReadonlyMap<RefName, RefValue>;
  /** The branch HEAD names, whether or not it exists. */
  readonly head: RefName;
  /** Of all its objects. */
  readonly format: ObjectFormat;
  /** Of its rows; 0 when there are none. */
  readonly version: number;
  /** Grows with each table that is made; part of the key of shared fetch answers. */
  readonly generation: number;
}

const emptyOf = (format: ObjectFormat): RefTable => ({
  refs: new Map(),
  head: unbornBranch as RefName,
  format,
  version: 0,
  generation: 0,
});

/** Of a repository without rows, also of one that is not on disk yet and answers as an empty one (`/prs/`). */
export const emptyTables: Readonly<Record<ObjectFormat, RefTable>> = {
  sha1: emptyOf("sha1"),
  sha256: emptyOf("sha256"),
};

/** The refs after these changes (undefined: the ref goes). New ones are put where they belong: what is sorted is not sorted again. */
export function refsAfter(
  before: ReadonlyMap<RefName, RefValue>,
  changes: ReadonlyMap<RefName, RefValue | undefined>,
): Map<RefName, RefValue> {
  const created = [...changes.keys()].filter((ref) => changes.get(ref) && !before.has(ref)).sort(compareUtf8);
  const after = new Map<RefName, RefValue>();
  const put = (ref: RefName, value: RefValue | undefined): void => {
    if (value) after.set(ref, value);
  };
  let [next] = created;
  let at = 0;
  for (const [ref, value] of before) {
    for (; next !== undefined && compareUtf8(next, ref) < 0; next = created[++at]) put(next, changes.get(next));
    put(ref, changes.has(ref) ? changes.get(ref) : value);
  }
  for (const ref of created.slice(at)) put(ref, changes.get(ref));
  return after;
}

/** What an empty table costs, in refs. */
const tableWeight = 8;

export class RefTables {
  readonly #tables = new Map<string, RefTable>();
  #weight = 0;
  #generation = 0;

  constructor(readonly maxRefs: number) {}

  get(key: string): RefTable | undefined {
    const table = this.#tables.get(key);
    if (!table) return undefined;
    // Re-inserted: the map's order is the order of use.
    this.#tables.delete(key);
    this.#tables.set(key, table);
    return table;
  }

  set(key: string, { head, refs, format, version }: Omit<RefTable, "generation">): RefTable {
    this.delete(key);
    const table: RefTable = { head, refs, format, version, generation: ++this.#generation };
    this.#tables.set(key, table);
    this.#weight += refs.size + tableWeight;
    for (const [oldKey] of this.#tables) {
      if (this.#weight <= this.maxRefs) break;
      if (oldKey !== key) this.delete(oldKey);
    }
    return table;
  }

  delete(key: string): void {
    const table = this.#tables.get(key);
    if (!table) return;
    this.#tables.delete(key);
    this.#weight -= table.refs.size + tableWeight;
  }
}

// Syncs git's own refs to disk in the background, many repositories at a time, then records which version they have: the
// next start brings those in line again whose recorded version is older than their rows'. Files that could not follow
// their rows are tried again here.

const delayMs = 1_000;
const longestDelayMs = 60_000;

/** A repository, as far as its files are concerned. */
interface Aligned {
  readonly address: RepositoryAddress;
  alignedVersion(): Promise<number | undefined>;
  /** Of these refs, or of all. */
  syncRefs(names: WrittenRefs): Promise<void>;
}

/** Refs whose files were written and not synced yet; undefined: any of them. One branch of ten thousand costs one. */
type WrittenRefs = ReadonlySet<RefName> | undefined;

interface Unsynced {
  readonly repository: Aligned;
  readonly names: WrittenRefs;
}

const both = (one: WrittenRefs, other: WrittenRefs): WrittenRefs => one && other && new Set([...one, ...other]);

export class RefAlignment {
  readonly #waiting = new Map<string, Unsynced>();
  /** Those of the work under way that are still there. */
  #atWork = new Set<string>();
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();
  #nextDelayMs = delayMs;
  /** Whom faults are told. */
  failed: (error: unknown) => void = () => undefined;

  constructor(
    private readonly store: Pick<Store, "transact">,
    private readonly clock: Clock,
  ) {}

  /** `names`: whose files were written; left out, all files are looked at. */
  add(repository: Aligned, names?: WrittenRefs): void {
    this.#wait({ repository, names });
    this.#arm();
  }

  #wait({ repository, names }: Unsynced): void {
    const { key } = repository.address;
    const before = this.#waiting.get(key);
    this.#waiting.set(key, { repository, names: before ? both(before.names, names) : names });
  }

  /** Its directory is gone. */
  forget(key: string): void {
    this.#waiting.delete(key);
    this.#atWork.delete(key);
  }

  #arm(): void {
    this.#cancel ??= this.clock.after(this.#nextDelayMs, () => void this.flush());
  }

  /** Syncs and records everything there is so far. */
  flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running = this.#running.then(() => this.#work()).catch(this.failed);
    return this.#running;
  }

  async #work(): Promise<void> {
    const batch = [...this.#waiting];
    this.#waiting.clear();
    this.#atWork = new Set(batch.map(([key]) => key));
    const synced: { readonly repository: Aligned; readonly version: number }[] = [];
    let fault: { readonly error: unknown } | undefined;
    for (const [key, unsynced] of batch) {
      const { repository } = unsynced;
      try {
        const version = await repository.alignedVersion();
        if (version === undefined) {
          // They change again, and are told of again: these are synced then.
          this.#wait(unsynced);
          continue;
        }
        // What was written meanwhile is part of that version.
        const later = this.#waiting.get(key);
        await repository.syncRefs(later ? both(unsynced.names, later.names) : unsynced.names);
        synced.push({ repository, version });
      } catch (error) {
        fault = { error };
        this.#wait(unsynced);
      }
    }
    try {
      if (synced.length > 0) await this.record(synced);
    } catch (error) {
      fault = { error };
      // Their files are synced, and only the record is missing.
      for (const { repository } of synced) this.#wait({ repository, names: new Set() });
    }
    this.#nextDelayMs = fault ? Math.min(longestDelayMs, this.#nextDelayMs * 2) : delayMs;
    if (!fault) return;
    this.#arm();
    throw fault.error;
  }

  private async record(synced: readonly { readonly repository: Aligned; readonly version: number }[]): Promise<void> {
    const work = async (tx: Transaction): Promise<void> => {
      for (const { repository, version } of synced) {
        // Removed meanwhile, and perhaps made anew: then these were other files.
        if (this.#atWork.has(repository.address.key)) await recordAligned(tx, repository.address, version);
      }
    };
    await this.store.transact(work, { isLocal: true });
  }
}
