// Refs that survive a power cut. Refs are not fsynced one by one (that costs one fsync each). Instead their values are
// promised first, in table "journal":
//   refs:<owner>:<identifier>:<number> → PromisedRefs: written before the refs are, removed when the refs are synced
// After a power cut the next start writes the refs again from there. Journal holds the rows, RefWriter writes refs that
// events speak of, RefFsync syncs written refs in the background and ends their promises.

import type { Clock } from "../base/clock.js";
import {
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import type { RepositoryAddress } from "../git/address.js";
import type { Repositories } from "../git/repositories.js";
import type { GitRepository } from "../git/repository.js";
import type { RefUpdate } from "../git/repository-refs.js";
import type { EventId, Oid, RefName } from "../nostr/ids.js";
import type { Store, Transaction } from "../store/port.js";
import type { PurgatoryContext } from "./context.js";
import { endPartial } from "./partial-clock.js";

export interface PromisedRefs {
  readonly owner: RepositoryName["owner"];
  readonly identifier: string;
  readonly area: "main" | "prs";
  readonly updates: readonly { readonly ref: RefName; readonly to: Oid | null }[];
  readonly head: RefName | null;
  /** Of a push, whose packs follow the promise: what goes back with it when they never came. */
  readonly push?: PushedUnder;
}

/** What the promise of a push changed besides: the repository's mark, and whether a partial state's clock began. */
export interface PushedUnder {
  readonly state?: EventId;
  readonly markBefore?: CatalogueRow["mark"];
  readonly startedClock?: boolean;
}

const refsPrefix = "refs:";

export class Journal {
  readonly #store: Store;
  #next = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Must be called once before anything is promised, so that keys of an earlier run are not written over. */
  async open(): Promise<readonly (PromisedRefs & { readonly key: string })[]> {
    const left: (PromisedRefs & { key: string })[] = [];
    for await (const [key, row] of this.#store.rows<PromisedRefs>("journal", { prefix: refsPrefix })) {
      left.push({ ...row, key });
      this.#next = Math.max(this.#next, Number(key.slice(key.lastIndexOf(":") + 1)) + 1);
    }
    return left.sort((a, b) => numberAtEnd(a.key) - numberAtEnd(b.key));
  }

  /** Writes a promise inside a transaction; the key is needed to keep it. */
  promise(tx: Transaction, promised: PromisedRefs): string {
    const key = `${refsPrefix}${repositoryKey(promised)}:${this.#next++}`;
    tx.setRow("journal", key, promised);
    return key;
  }

  async kept(keys: readonly string[], besides?: (tx: Transaction) => Promise<void>): Promise<void> {
    if (keys.length === 0) return;
    await this.#store.transact(async (tx) => {
      for (const key of keys) tx.deleteRow("journal", key);
      await besides?.(tx);
    });
  }
}

const numberAtEnd = (key: string): number => Number(key.slice(key.lastIndexOf(":") + 1));

/** The refs of a push were not written: everything is as it was before its promise. */
export async function takeBack(
  tx: Transaction,
  name: RepositoryName,
  { state, ...before }: PushedUnder,
): Promise<void> {
  if (state === undefined) return;
  const row = await catalogueRow(tx, name);
  if (before.markBefore !== undefined && row?.mark?.id === state)
    setCatalogueRow(tx, { ...row, mark: before.markBefore });
  if (before.startedClock) endPartial(tx, name, state);
}

/** Writes refs that events speak of: promised in the journal first, withheld from clients until the events are stored. */
export class RefWriter {
  constructor(private readonly parts: PurgatoryContext & { readonly journal: Journal; readonly refFsync: RefFsync }) {}

  /** Under the repository's lock. False: it could not be done; nothing that speaks of it may be stored. */
  async write(repository: GitRepository, updates: readonly RefUpdate[], head?: RefName): Promise<boolean> {
    const { store, journal, refFsync, observer } = this.parts;
    const { address } = repository;
    if (updates.length > 0) {
      const { owner, identifier, area } = address;
      const promised = updates.map(({ ref, to }) => ({ ref, to: to ?? null }));
      const row = { owner, identifier, area, updates: promised, head: head ?? null };
      const promise = await store.transact(async (tx) => journal.promise(tx, row));
      // Also when it throws: whatever was written is synced, and the promise must not outlive newer ones.
      const result = await repository
        .updateRefs(updates, { withhold: true })
        .finally(() => refFsync.add(address, promise));
      if (!result.ok) {
        observer.problem({ owner, identifier }, `its refs could not be written: ${result.reason}`);
        return false;
      }
    }
    if (head && (await repository.refs()).head !== head) await repository.setHead(head, { withhold: true });
    return true;
  }
}

const delayMs = 1_000;
const longestDelayMs = 60_000;

interface Made {
  readonly key: string;
  /** Written together with the end of the promise. */
  readonly besides: ((tx: Transaction) => Promise<void>) | undefined;
}

interface Promises {
  readonly address: RepositoryAddress;
  /** In the order in which they were made. */
  readonly made: readonly Made[];
}

/**
 * Syncs promised refs to disk in the background, many at a time, then deletes the promises. What could not be synced is
 * tried again, always together with what was promised for that repository since: the next start would write an old
 * promise that outlives a newer one over it (threats.md row 51).
 */
export class RefFsync {
  readonly #waiting = new Map<string, Promises>();
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();
  #nextDelayMs = delayMs;

  constructor(
    private readonly repositories: Pick<Repositories, "exists" | "open">,
    private readonly journal: Pick<Journal, "kept">,
    private readonly clock: Clock,
    private readonly failed: (error: unknown) => void,
  ) {}

  add(address: RepositoryAddress, key: string, besides?: (tx: Transaction) => Promise<void>): void {
    const made = this.#waiting.get(address.key)?.made ?? [];
    this.#waiting.set(address.key, { address, made: [...made, { key, besides }] });
    this.#arm();
  }

  #arm(): void {
    this.#cancel ??= this.clock.after(this.#nextDelayMs, () => void this.flush());
  }

  /** Keeps everything promised so far. */
  flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running = this.#running.then(() => this.#keep()).catch(this.failed);
    return this.#running;
  }

  async #keep(): Promise<void> {
    const batch = [...this.#waiting.values()];
    this.#waiting.clear();
    const synced: Promises[] = [];
    let fault: { readonly error: unknown } | undefined;
    for (const promises of batch) {
      try {
        const { address } = promises;
        if (await this.repositories.exists(address)) await this.repositories.open(address).syncRefs();
        synced.push(promises);
      } catch (error) {
        fault = { error };
        this.#again(promises);
      }
    }
    const made = synced.flatMap((promises) => promises.made);
    try {
      await this.journal.kept(
        made.map(({ key }) => key),
        async (tx) => {
          for (const { besides } of made) await besides?.(tx);
        },
      );
    } catch (error) {
      fault = { error };
      for (const promises of synced) this.#again(promises);
    }
    this.#nextDelayMs = fault ? Math.min(longestDelayMs, this.#nextDelayMs * 2) : delayMs;
    if (!fault) return;
    this.#arm();
    throw fault.error;
  }

  #again({ address, made }: Promises): void {
    const since = this.#waiting.get(address.key)?.made ?? [];
    this.#waiting.set(address.key, { address, made: [...made, ...since] });
  }
}
