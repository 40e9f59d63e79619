// Which packs make up each repository, in table "packs", where several machines share them (git/shared-packs.ts). A server
// that is alone has no such rows: its packs are those in its directories.
//   repository:<key>           → PackList: the repository exists; the version of its list
//   pack:<key> <pack's name>   → StoredPack: a pack of that list
//   unclaimed:<key> <event id> → UnclaimedPacks: what was pushed for an event that nobody knows yet
//   retired:<stored name>      → ms: since then no list names it
//   going:<stored name>        → ms: since then it is being removed from the pack store
//   hold:<id>                  → PackHold: a backup reads packs that may have left their lists
// A plan is made from all packs of a list. Packs that are added later do not invalidate the plan, packs that are removed do.
// So a list records the version at which a pack was last removed.

import type { EventId } from "../nostr/event.js";
import type { ObjectFormat, Oid } from "../nostr/nip34.js";
import type { Commit, Store, TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryKey } from "./repositories.js";

export interface PackList extends RepositoryName {
  /** Drawn when the repository was made: one that was deleted and made again is another one. */
  readonly made: string;
  /** Grows with each change of the list. */
  readonly version: number;
  /** The version at which a pack last left the list. */
  readonly lostAt: number;
  /** Of all its objects. */
  readonly format: ObjectFormat;
  /** Packs that the pack store lacks or has damaged: they are hunted, and what needs them is not served. */
  readonly lost?: readonly string[];
}

/** One file of a pack. */
export interface StoredPart {
  readonly suffix: string;
  readonly bytes: number;
  readonly sha256: string;
}

export interface StoredPack {
  /** git's own name of it, `pack-<hash>`. */
  readonly name: string;
  /** Without a suffix: what its files are called in the pack store. */
  readonly stored: string;
  readonly parts: readonly StoredPart[];
  /** When it was put into the pack store; ms. */
  readonly putAt: number;
}

export interface UnclaimedPacks {
  readonly eventId: EventId;
  readonly tip: Oid;
  readonly sinceMs: number;
  readonly packs: readonly StoredPack[];
}

export interface PackHold {
  readonly since: number;
  /** A backup that never said that it ended: until then, at the longest. */
  readonly until: number;
}

/** What something was planned on. */
export type PackBasis = Pick<PackList, "made" | "version">;

const rowsAtOnce = 2_000;
const listPrefix = "repository:";
const packPrefix = (name: RepositoryName): string => `pack:${repositoryKey(name)} `;
const unclaimedPrefix = (name: RepositoryName): string => `unclaimed:${repositoryKey(name)} `;

export const bytesOf = (packs: readonly StoredPack[]): number =>
  packs.reduce((sum, { parts }) => sum + parts.reduce((all, { bytes }) => all + bytes, 0), 0);

/** Undefined: there is no such repository. */
export const packList = (reader: TableReader, name: RepositoryName): Promise<PackList | undefined> =>
  packListOf(reader, repositoryKey(name));

export const packListOf = (reader: TableReader, key: string): Promise<PackList | undefined> =>
  reader.row<PackList>("packs", listPrefix + key);

const setList = (tx: Transaction, list: PackList): void => tx.setRow("packs", listPrefix + repositoryKey(list), list);

export async function listedPacks(reader: TableReader, name: RepositoryName): Promise<StoredPack[]> {
  const found: StoredPack[] = [];
  for await (const [, pack] of reader.rows<StoredPack>("packs", { prefix: packPrefix(name) })) found.push(pack);
  return found;
}

/** Every repository there is, or those of one owner. */
export async function* packLists(
  reader: TableReader,
  of: Partial<Pick<RepositoryName, "owner" | "area">> = {},
): AsyncIterable<PackList> {
  const prefix = of.owner === undefined ? "" : `${of.area === "prs" ? "prs:" : ""}${of.owner}:`;
  for await (const [, list] of reader.rows<PackList>("packs", { prefix: listPrefix + prefix })) yield list;
}

/** True: it was not there. */
export async function makeList(
  tx: Transaction,
  { owner, identifier, area }: RepositoryName,
  made: string,
  format: ObjectFormat,
): Promise<boolean> {
  const name = { owner, identifier, ...(area === "prs" ? { area } : {}) };
  if (await packList(tx, name)) return false;
  setList(tx, { ...name, made, version: 1, lostAt: 0, format });
  return true;
}

/** Nothing that the plan rests on went since. */
export const stillRests = (basis: PackBasis | undefined, list: PackList | undefined): list is PackList =>
  basis !== undefined && list !== undefined && basis.made === list.made && list.lostAt <= basis.version;

export function addPacks(tx: Transaction, list: PackList, packs: readonly StoredPack[]): void {
  if (packs.length === 0) return;
  setList(tx, { ...list, version: list.version + 1 });
  for (const pack of packs) {
    tx.setRow("packs", packPrefix(list) + pack.name, pack);
    tx.deleteRow("packs", `retired:${pack.stored}`);
  }
}

/** Some packs in the place of others. */
export function replacePacks(
  tx: Transaction,
  list: PackList,
  gone: readonly StoredPack[],
  come: readonly StoredPack[],
  nowMs: number,
): void {
  const version = list.version + 1;
  const names = new Set(gone.map(({ name }) => name));
  const { lost: before = [], ...rest } = list;
  const lost = before.filter((name) => !names.has(name));
  setList(tx, { ...rest, version, lostAt: gone.length > 0 ? version : list.lostAt, ...(lost.length > 0 && { lost }) });
  for (const pack of gone) {
    tx.deleteRow("packs", packPrefix(list) + pack.name);
    tx.setRow("packs", `retired:${pack.stored}`, nowMs);
  }
  for (const pack of come) {
    tx.setRow("packs", packPrefix(list) + pack.name, pack);
    tx.deleteRow("packs", `retired:${pack.stored}`);
  }
}

/** Nothing of these can be had from the pack store; none: everything can again. */
export function noteLost(tx: Transaction, { lost: _, ...list }: PackList, lost: readonly string[]): void {
  setList(tx, { ...list, version: list.version + 1, ...(lost.length > 0 && { lost }) });
}

/** The repository goes; its packs retire. */
export async function removeList(tx: Transaction, name: RepositoryName, nowMs: number): Promise<void> {
  const packs = await listedPacks(tx, name);
  for (const { eventId, packs: unclaimed } of await unclaimedPacks(tx, name)) {
    packs.push(...unclaimed);
    tx.deleteRow("packs", unclaimedPrefix(name) + eventId);
  }
  for (const pack of packs) {
    tx.deleteRow("packs", packPrefix(name) + pack.name);
    tx.setRow("packs", `retired:${pack.stored}`, nowMs);
  }
  tx.deleteRow("packs", listPrefix + repositoryKey(name));
}

export async function unclaimedPacks(reader: TableReader, name: RepositoryName): Promise<UnclaimedPacks[]> {
  const found: UnclaimedPacks[] = [];
  for await (const [, row] of reader.rows<UnclaimedPacks>("packs", { prefix: unclaimedPrefix(name) })) found.push(row);
  return found;
}

export const unclaimedFor = (
  reader: TableReader,
  name: RepositoryName,
  id: EventId,
): Promise<UnclaimedPacks | undefined> => reader.row<UnclaimedPacks>("packs", unclaimedPrefix(name) + id);

export const setUnclaimed = (tx: Transaction, name: RepositoryName, row: UnclaimedPacks): void =>
  tx.setRow("packs", unclaimedPrefix(name) + row.eventId, row);

export async function forgetUnclaimed(
  tx: Transaction,
  name: RepositoryName,
  id: EventId,
  nowMs: number,
): Promise<void> {
  const row = await unclaimedFor(tx, name, id);
  if (!row) return;
  tx.deleteRow("packs", unclaimedPrefix(name) + id);
  for (const { stored } of row.packs) tx.setRow("packs", `retired:${stored}`, nowMs);
}

interface ChangedPacks {
  /** Keys of the repositories whose list another machine changed, made or removed. */
  readonly lists: readonly string[];
  /** Keys of those whose unclaimed data it changed. */
  readonly unclaimed: readonly string[];
}

export function changedPacks(commit: Commit): ChangedPacks {
  const lists: string[] = [];
  const unclaimed = new Set<string>();
  for (const key of commit.changedKeys("packs")) {
    if (key.startsWith(listPrefix)) lists.push(key.slice(listPrefix.length));
    else if (key.startsWith("unclaimed:")) unclaimed.add(key.slice("unclaimed:".length, key.lastIndexOf(" ")));
  }
  return { lists, unclaimed: [...unclaimed] };
}

/** The server that leaves its cluster: its packs are those in its directories again. */
export async function forgetPacks(store: Store): Promise<void> {
  for (;;) {
    const keys: string[] = [];
    for await (const [key] of store.rows("packs", { limit: rowsAtOnce })) keys.push(key);
    if (keys.length === 0) return;
    await store.transact(async (tx) => {
      for (const key of keys) tx.deleteRow("packs", key);
    });
  }
}

// What the removal of files from the pack store asks (git/pack-cleaning.ts).

export const retiredSince = (reader: TableReader, stored: string): Promise<number | undefined> =>
  reader.row<number>("packs", `retired:${stored}`);

export const goingSince = (reader: TableReader, stored: string): Promise<number | undefined> =>
  reader.row<number>("packs", `going:${stored}`);

export function setGoing(tx: Transaction, stored: string, nowMs: number): void {
  tx.setRow("packs", `going:${stored}`, nowMs);
  tx.deleteRow("packs", `retired:${stored}`);
}

/** Those that began to go before that moment. */
export async function goneBefore(reader: TableReader, beforeMs: number): Promise<string[]> {
  const found: string[] = [];
  for await (const [key, since] of reader.rows<number>("packs", { prefix: "going:" })) {
    if (since < beforeMs) found.push(key.slice("going:".length));
  }
  return found;
}

export const forgetGone = (tx: Transaction, stored: string): void => tx.deleteRow("packs", `going:${stored}`);

export const setHold = (tx: Transaction, id: string, hold: PackHold | undefined): void =>
  hold ? tx.setRow("packs", `hold:${id}`, hold) : tx.deleteRow("packs", `hold:${id}`);

/** Holds that live: what retired after the first of them began stays. */
export async function oldestHold(reader: TableReader, nowMs: number): Promise<number | undefined> {
  let oldest: number | undefined;
  for await (const [, { since, until }] of reader.rows<PackHold>("packs", { prefix: "hold:" })) {
    if (until > nowMs) oldest = Math.min(oldest ?? since, since);
  }
  return oldest;
}
