// How refs change: one transaction writes the new refs of all repositories concerned together with whatever speaks of them
// (released events, rows of the catalogue). Objects are in place before it. In the turn of its commit the tables in memory
// are replaced; then git's own files follow, before the caller goes on.

import {
  type ChangedRef,
  changeRefs as changeRows,
  mayBePeeled,
  type RefValue,
  refsVersion,
} from "../catalogue/refs.js";
import { formatOf, type Oid, type RefName } from "../nostr/nip34.js";
import type { LedBy, Transaction } from "../store/port.js";
import { peelTags } from "./objects.js";
import type { Placed } from "./quarantine.js";
import { type RefTable, refsAfter } from "./ref-tables.js";
import { foldersOf, type RefUpdate, type RepositoryContext, type RepositoryRefs } from "./repository-refs.js";
import { checkedOid } from "./run.js";

/** What a transaction was planned on is not so any more: nothing was written, and it is to be planned again. */
export class Overtaken extends Error {
  override readonly name = "Overtaken";
}

/** Throws Overtaken when packs went that the plan rests on. */
export type PlanBasis = (tx: Transaction) => Promise<void>;

interface Wish {
  readonly repository: RepositoryRefs;
  readonly updates: ReadonlyMap<RefName, Oid | undefined>;
  readonly head: RefName | undefined;
}

/** Refs that are to change together, by repository. Of two wishes for one ref the later counts. */
export class RefChanges {
  readonly #wishes = new Map<string, Wish>();
  readonly #placed: Placed[] = [];

  /** `basis`: what was planned on, where machines share their packs (Repositories.basisOf). */
  constructor(
    readonly basis?: PlanBasis,
    readonly ledBy?: LedBy,
  ) {}

  /** Objects that these changes name, in place already. */
  naming(placed: readonly Placed[]): this {
    this.#placed.push(...placed);
    return this;
  }

  get placed(): readonly Placed[] {
    return this.#placed;
  }

  add(repository: RepositoryRefs, updates: readonly RefUpdate[], head?: RefName): this {
    const before = this.#wishes.get(repository.address.key);
    const all = new Map([...(before?.updates ?? []), ...updates.map(({ ref, to }) => [ref, to] as const)]);
    this.#wishes.set(repository.address.key, { repository, updates: all, head: head ?? before?.head });
    return this;
  }

  /** Nothing would change. */
  async areAsWanted(): Promise<boolean> {
    for (const { repository, updates, head } of this) {
      const table = await repository.refs();
      if (head !== undefined && head !== table.head) return false;
      for (const [ref, to] of updates) if (table.refs.get(ref)?.oid !== to) return false;
    }
    return true;
  }

  [Symbol.iterator](): Iterator<Wish> {
    return this.#wishes.values();
  }
}

interface Change {
  readonly repository: RepositoryRefs;
  readonly before: RefTable;
  readonly refs: readonly ChangedRef[];
  readonly after: Pick<RefTable, "head" | "refs">;
}

const fewRefs = 8;

/** A ref that git could not keep beside another one, which is a directory of its name or the reverse. */
export function clashOf(
  { refs }: Pick<RefTable, "refs">,
  updates: readonly RefUpdate[],
): readonly [RefName, RefName] | undefined {
  const created = updates.filter(({ ref, to }) => to !== undefined && !refs.has(ref)).map(({ ref }) => ref);
  if (created.length === 0) return undefined;
  const isNew = new Set<string>(created);
  const gone = new Set<string>(updates.flatMap(({ ref, to }) => (to === undefined ? [ref] : [])));
  const stays = (ref: string): boolean => refs.has(ref as RefName) && !gone.has(ref);
  for (const ref of created) {
    const above = foldersOf(ref).find((folder) => isNew.has(folder) || stays(folder));
    if (above !== undefined) return [above as RefName, ref];
  }
  // A hundred thousand refs are taken apart only for many new ones.
  const isFew = created.length <= fewRefs;
  const newAbove = (ref: RefName): string | undefined =>
    isFew
      ? created.find((folder) => ref.startsWith(folder) && ref[folder.length] === "/")
      : foldersOf(ref).find((folder) => isNew.has(folder));
  for (const ref of refs.keys()) {
    const above = newAbove(ref);
    if (above !== undefined && !gone.has(ref)) return [above as RefName, ref];
  }
  return undefined;
}

/** Undefined: everything is so already. */
async function changeOf({ repository, updates, head }: Wish): Promise<Change | undefined> {
  const before = await repository.refs();
  const moved = [...updates].filter(([ref, to]) => before.refs.get(ref)?.oid !== to);
  for (const [, to] of moved) {
    if (to !== undefined && formatOf(checkedOid(to)) !== before.format) throw new RangeError("an id of another format");
  }
  const clash = clashOf(
    before,
    moved.map(([ref, to]) => ({ ref, to })),
  );
  if (clash) throw new Error(`git cannot keep ${clash[0]} beside ${clash[1]}`);
  const peeled = await peelTags(
    repository.place,
    moved.flatMap(([ref, to]) => (to !== undefined && mayBePeeled(ref) ? [to] : [])),
  );
  const values = new Map(
    moved.map(([ref, to]): [RefName, RefValue | undefined] => [
      ref,
      to === undefined ? undefined : { oid: to, peeled: mayBePeeled(ref) ? peeled.get(to) : undefined },
    ]),
  );
  const changes = [...values].map(([ref, value]): ChangedRef => ({ ref, value }));
  const refs = refsAfter(before.refs, values);
  // HEAD moves only to a branch that exists.
  const isThere = (branch: RefName): boolean => branch.startsWith("refs/heads/") && refs.has(branch);
  const after = { head: head !== undefined && isThere(head) ? head : before.head, refs };
  if (changes.length === 0 && after.head === before.head) return undefined;
  return { repository, before, refs: changes, after };
}

/**
 * `alongside` writes what belongs to the refs and asks again for everything the plan was made on; whatever it throws, an
 * Overtaken above all, nothing is written. `committed` is called in the turn of the commit.
 */
export async function changeRefs<T>(
  context: RepositoryContext,
  wishes: RefChanges,
  alongside: (tx: Transaction) => Promise<T>,
  committed: (result: T) => void = () => undefined,
): Promise<T> {
  const { store, tables, inUse, refLocks, alignment } = context;
  // Everything is written: a listener that fails must not make it look as if nothing were, or the objects would be taken back.
  const told = (tell: () => void): void => {
    try {
      tell();
    } catch (error) {
      alignment.failed(error);
    }
  };
  const changes: Change[] = [];
  for (const wish of wishes) {
    const change = await changeOf(wish);
    if (change) changes.push(change);
  }
  const write = async (tx: Transaction): Promise<T> => {
    await wishes.basis?.(tx);
    for (const placed of wishes.placed) {
      if (!(await placed.list(tx))) throw new Overtaken("packs of a repository have changed");
    }
    return await alongside(tx);
  };
  const listed = (): void => {
    for (const placed of wishes.placed) placed.listed();
  };
  if (changes.length === 0) {
    const result = await store.transact(write, wishes.ledBy);
    listed();
    told(() => committed(result));
    return result;
  }
  const commit = async (): Promise<T> => {
    let versions: number[] = [];
    const result = await store.transact(async (tx) => {
      versions = [];
      for (const { repository, before } of changes) {
        if ((await refsVersion(tx, repository.address)) === before.version) continue;
        tables.delete(repository.address.key);
        throw new Overtaken(`the refs of ${repository.address.label} have changed`);
      }
      const written = await write(tx);
      for (const { repository, refs, after } of changes) {
        versions.push(await changeRows(tx, repository.address, refs, after.head));
      }
      return written;
    }, wishes.ledBy);
    listed();
    for (const [index, { repository, before, refs, after }] of changes.entries()) {
      tables.set(repository.address.key, { ...after, format: before.format, version: versions[index] ?? 0 });
      repository.fallBehind(refs.map(({ ref }) => ref));
    }
    told(() => committed(result));
    return result;
  };
  const keys = changes.map(({ repository }) => repository.address.key);
  // Housekeeping makes way for who writes, and for nobody else. Before the ref locks, which it may wait for.
  const result = await inUse.during(keys, () => refLocks.runAll(keys, commit));
  for (const { repository } of changes) {
    told(() => context.changed(repository.address));
    // The rows are written: the change stands. A git or a launcher that was killed is most likely not killed again; files that
    // could not follow all the same are tried again in the background.
    const follow = (): Promise<void> => repository.bringInLine();
    await follow()
      .catch(follow)
      .catch(() => alignment.add(repository));
  }
  return result;
}
