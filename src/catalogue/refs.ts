// The refs of every repository, in table "refs". The rows are the truth: what is advertised and decided on is read from
// them, and git's own files are brought in line with them (git/repository-refs.ts).
//   repository:<key> → RefsRow: which repository, its version and HEAD. The version grows with each change
//   ref:<key> <ref name> → "<id>", or "<id> <what the annotated tag finally points at>"
//   tip:<id> <key> → TipRow: a repository with this commit on a branch or tag, now or lately; what is said of a commit alone
//   is about it (admission/related.ts). Changed with the refs, by what changed
//   former:<key> <place> → "<id>" that no branch or tag names any more; the oldest gives way
// Beside them table "aligned", which speaks of this machine's files alone:
//   <key> → the version that git's own files are known to have, on disk
// The longest key is `ref:prs:` + 64 + `:` + 256 + ` ` + 255 bytes (maxRefNameBytes): 585 of the store's 1,000.

import type { Oid, RefName } from "../nostr/nip34.js";
import type { Commit, TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryKey } from "./repositories.js";

export interface RefValue {
  readonly oid: Oid;
  /** For an annotated tag: the object it finally points at. */
  readonly peeled: Oid | undefined;
}

/** Branches are commits; everything else may be a tag object. */
export const mayBePeeled = (name: RefName): boolean => !name.startsWith("refs/heads/");

interface RefsRow extends RepositoryName {
  readonly version: number;
  readonly head: RefName;
  /** How many commits its branches and tags have named and name no more. */
  readonly left?: number;
}

/** What a change writes: `value` undefined deletes the ref. */
export interface ChangedRef {
  readonly ref: RefName;
  readonly value: RefValue | undefined;
}

export interface StoredRefs {
  readonly version: number;
  readonly head: RefName;
  /** In the order of their names' bytes, as git sorts them. */
  readonly refs: Map<RefName, RefValue>;
}

const idsOf = ({ oid, peeled }: RefValue): Oid[] => (peeled === undefined ? [oid] : [oid, peeled]);

const rowPrefix = "repository:";
const rowKey = (name: RepositoryName): string => `${rowPrefix}${repositoryKey(name)}`;
const refPrefix = (name: RepositoryName): string => `ref:${repositoryKey(name)} `;

const refsRow = (reader: TableReader, name: RepositoryName): Promise<RefsRow | undefined> =>
  reader.row<RefsRow>("refs", rowKey(name));

/** 0: nothing was ever written for it. */
export const refsVersion = async (reader: TableReader, name: RepositoryName): Promise<number> =>
  (await refsRow(reader, name))?.version ?? 0;

/** Between so many rows others get their turn. */
const rowsAtOnce = 2_000;

/**
 * Undefined: no row speaks of it. Whoever reads outside a transaction keeps changes of that repository away meanwhile: rows
 * are read in pages.
 */
export async function readRefs(reader: TableReader, name: RepositoryName): Promise<StoredRefs | undefined> {
  const row = await refsRow(reader, name);
  if (!row) return undefined;
  const refs = new Map<RefName, RefValue>();
  const prefix = refPrefix(name);
  for await (const [key, text] of reader.rows<string>("refs", { prefix })) {
    const [oid, peeled] = text.split(" ") as [Oid, Oid?];
    refs.set(key.slice(prefix.length) as RefName, { oid, peeled });
    if (refs.size % rowsAtOnce === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return { version: row.version, head: row.head, refs };
}

/** Any one of its refs: they all have the repository's format. */
export async function anyRef(reader: TableReader, name: RepositoryName): Promise<Oid | undefined> {
  for await (const [, text] of reader.rows<string>("refs", { prefix: refPrefix(name), limit: 1 })) {
    return text.split(" ")[0] as Oid;
  }
  return undefined;
}

interface TipRow {
  readonly owner: RepositoryName["owner"];
  readonly identifier: string;
  /** How many branches and tags name it. */
  readonly refs: number;
  /** How many places among the former ones it has. */
  readonly kept: number;
}

/** Former ones of a repository that count: a result for a commit comes minutes after it was pushed, and the branch moves on. */
const formerPlaces = 1_000;

const tipPrefix = (id: Oid): string => `tip:${id} `;
const tipKey = (name: RepositoryName, id: Oid): string => tipPrefix(id) + repositoryKey(name);
const formerPrefix = (name: RepositoryName): string => `former:${repositoryKey(name)} `;

/** Refs of pull requests do not count: whoever pushes one chooses its commit. */
const isTipOf = (name: RepositoryName, ref: RefName): boolean =>
  name.area !== "prs" && /^refs\/(?:heads|tags)\//.test(ref);

async function change(
  tx: Transaction,
  name: RepositoryName,
  id: Oid,
  by: { readonly refs?: number; readonly kept?: number },
): Promise<void> {
  const key = tipKey(name, id);
  const row = await tx.row<TipRow>("refs", key);
  const refs = Math.max(0, (row?.refs ?? 0) + (by.refs ?? 0));
  const kept = Math.max(0, (row?.kept ?? 0) + (by.kept ?? 0));
  const { owner, identifier } = name;
  if (refs + kept > 0) tx.setRow<TipRow>("refs", key, { owner, identifier, refs, kept });
  else if (row) tx.deleteRow("refs", key);
}

/** What one ref named before and names now. `left`: how many have left so far; answers how many have then. */
async function changeTips(
  tx: Transaction,
  name: RepositoryName,
  before: readonly Oid[],
  after: readonly Oid[],
  left: number,
): Promise<number> {
  for (const id of after) if (!before.includes(id)) await change(tx, name, id, { refs: 1 });
  for (const id of before) {
    if (after.includes(id)) continue;
    const place = `${formerPrefix(name)}${left++ % formerPlaces}`;
    const oldest = await tx.row<Oid>("refs", place);
    if (oldest !== undefined) await change(tx, name, oldest, { kept: -1 });
    tx.setRow("refs", place, id);
    await change(tx, name, id, { refs: -1, kept: 1 });
  }
  return left;
}

/**
 * For a repository that was removed: deletes its rows of tips. `named` are the commits its refs named; the commits its refs
 * named earlier are read from the store.
 */
async function removeTips(tx: Transaction, name: RepositoryName, named: Iterable<Oid>): Promise<void> {
  const ids = new Set(named);
  const places: string[] = [];
  for await (const [place, id] of tx.rows<Oid>("refs", { prefix: formerPrefix(name) })) {
    places.push(place);
    ids.add(id);
  }
  for (const key of [...places, ...[...ids].map((id) => tipKey(name, id))]) tx.deleteRow("refs", key);
}

export async function repositoriesWithTip(reader: TableReader, id: Oid, limit: number): Promise<RepositoryName[]> {
  const found: RepositoryName[] = [];
  for await (const [, { owner, identifier }] of reader.rows<TipRow>("refs", { prefix: tipPrefix(id), limit })) {
    found.push({ owner, identifier });
  }
  return found;
}

/** Answers the new version. */
export async function changeRefs(
  tx: Transaction,
  name: RepositoryName,
  changes: readonly ChangedRef[],
  head: RefName,
): Promise<number> {
  const { owner, identifier, area } = name;
  const known = await refsRow(tx, name);
  const version = (known?.version ?? 0) + 1;
  let left = known?.left ?? 0;
  for (const { ref, value } of changes) {
    const key = refPrefix(name) + ref;
    if (isTipOf(name, ref)) {
      const before = (await tx.row<string>("refs", key))?.split(" ") ?? [];
      left = await changeTips(tx, name, before as Oid[], value ? idsOf(value) : [], left);
    }
    if (value) tx.setRow("refs", key, value.peeled === undefined ? value.oid : `${value.oid} ${value.peeled}`);
    else tx.deleteRow("refs", key);
  }
  const row: RefsRow = { owner, identifier, ...(area === "prs" ? { area } : {}), version, head, left };
  tx.setRow("refs", rowKey(name), row);
  return version;
}

/** Keys of the repositories whose refs a commit changed. */
export function* changedRepositories(commit: Commit): Iterable<string> {
  for (const key of commit.changedKeys("refs")) if (key.startsWith(rowPrefix)) yield key.slice(rowPrefix.length);
}

/** Its directory is gone. */
export async function removeRefs(tx: Transaction, name: RepositoryName): Promise<void> {
  while (await removeSomeRefs(tx, name, rowsAtOnce));
  tx.deleteRow("refs", rowKey(name));
  forgetAligned(tx, name);
}

/** False: none is left. For a log whose changes may not be large. */
export async function removeSomeRefs(tx: Transaction, name: RepositoryName, limit: number): Promise<boolean> {
  const keys: string[] = [];
  const named: Oid[] = [];
  for await (const [key, text] of tx.rows<string>("refs", { prefix: refPrefix(name), limit })) {
    keys.push(key);
    named.push(...(text.split(" ") as Oid[]));
  }
  await removeTips(tx, name, named);
  for (const key of keys) tx.deleteRow("refs", key);
  return keys.length === limit;
}

/** This machine has no files of it. */
export const forgetAligned = (tx: Transaction, name: RepositoryName): void =>
  tx.deleteRow("aligned", repositoryKey(name));

/** Git's own files have at least this version, on disk. */
export async function recordAligned(tx: Transaction, name: RepositoryName, version: number): Promise<void> {
  // Removed in a transaction before this one.
  if ((await refsVersion(tx, name)) < version) return;
  // Whoever synced an older version and comes later must not make the files look older than they are.
  const known = (await tx.row<number>("aligned", repositoryKey(name))) ?? 0;
  if (known < version) tx.setRow("aligned", repositoryKey(name), version);
}

/** Repositories whose files may not be what their rows say. Not inside a transaction. */
export async function* unalignedRepositories(reader: TableReader): AsyncIterable<RepositoryName> {
  let after: string | undefined;
  for (;;) {
    let count = 0;
    const range = { prefix: "repository:", limit: rowsAtOnce, ...(after === undefined ? {} : { after }) };
    for await (const [key, row] of reader.rows<RefsRow>("refs", range)) {
      after = key;
      count += 1;
      const aligned = (await reader.row<number>("aligned", repositoryKey(row))) ?? 0;
      // A later version is of one that was removed by another machine, and made again.
      if (aligned !== row.version) yield row;
    }
    if (count < rowsAtOnce) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
