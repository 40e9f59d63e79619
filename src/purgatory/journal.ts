// Table "journal": ref values that were promised and may not be on disk yet, and pushes whose state is incomplete.
//   refs:<owner>:<identifier>:<number>   → PromisedRefs: written before the refs are, removed when they are synced
//   partial:<owner>:<identifier>:<state> → PartialPush: when the first push under a state that still waits came
// Refs themselves are not fsynced one by one (that costs one fsync each); after a power cut they are written again
// from here at the next start.

import {
  type CatalogueRow,
  catalogueRow,
  type RepositoryName,
  repositoryKey,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import type { EventId, Oid, RefName } from "../nostr/ids.js";
import type { Store, TableReader, Transaction } from "../store/port.js";

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

export interface PartialPush {
  readonly owner: RepositoryName["owner"];
  readonly identifier: string;
  readonly state: EventId;
  readonly since: number;
}

const refsPrefix = "refs:";
const partialPrefix = "partial:";

const partialKey = (name: RepositoryName, state: EventId): string => `${partialPrefix}${repositoryKey(name)}:${state}`;

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

/** The clock of a partial state starts with its first push and is not renewed by later ones. True: it starts now. */
export async function startPartial(
  tx: Transaction,
  name: RepositoryName,
  state: EventId,
  now: number,
): Promise<boolean> {
  const key = partialKey(name, state);
  if ((await tx.row("journal", key)) !== undefined) return false;
  const row: PartialPush = { owner: name.owner, identifier: name.identifier, state, since: now };
  tx.setRow("journal", key, row);
  return true;
}

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

/** For a clock that jumped. */
export const movePartial = (tx: Transaction, push: PartialPush, seconds: number): void =>
  tx.setRow("journal", partialKey(push, push.state), { ...push, since: push.since + seconds });

export const partialPush = (
  reader: TableReader,
  name: RepositoryName,
  state: EventId,
): Promise<PartialPush | undefined> => reader.row<PartialPush>("journal", partialKey(name, state));

export const endPartial = (tx: Transaction, name: RepositoryName, state: EventId): void =>
  tx.deleteRow("journal", partialKey(name, state));

export async function partialPushes(reader: TableReader): Promise<PartialPush[]> {
  const found: PartialPush[] = [];
  for await (const [, row] of reader.rows<PartialPush>("journal", { prefix: partialPrefix })) found.push(row);
  return found;
}
