// Large files (LFS) of each repository, in table "lfs"; the bytes themselves are files in its directory (lfs/files.ts).
//   file:<key> <oid>      → LargeFileRow: one that is here, or that a released pointer names
//   unclaimed:<key> <oid> → UnclaimedFileRow: brought by anybody, named by nothing that is released; counted like an unclaimed push
//   total:<key>           → LargeFileTotals of the file rows
//   scan:<key>            → ScanRow: what of the refs was searched for pointers
//   pr:<key> <event id>   → 1: a pull request that was searched
//   oid:<oid> <key>       → 1: here, for whoever asks by hash alone

import type { Brand } from "../base/brand.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { Oid } from "../nostr/nip34.js";
import type { Commit, TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryKey, repositoryOfKey } from "./repositories.js";

/** SHA-256 of a large file, as a pointer names it: 64 lower-case hex digits, safe as a file name. */
export type LargeFileId = Brand<string, "LargeFileId">;

const idPattern = /^[0-9a-f]{64}$/;

export const isLargeFileId = (text: unknown): text is LargeFileId => typeof text === "string" && idPattern.test(text);

export interface LargeFileRow {
  /** While it is not here: what the newest pointer says. */
  readonly size: number;
  readonly isHere: boolean;
  /** A released commit or pull request has a pointer to it. */
  readonly isNamed: boolean;
  /** Second since which it is here, or missing, or not named any more. */
  readonly since: number;
  /** Whose bytes they are: the owner's if absent. */
  readonly contributor?: Pubkey;
}

export interface UnclaimedFileRow extends Pick<RepositoryName, "owner" | "identifier" | "area"> {
  readonly oid: LargeFileId;
  readonly bytes: number;
  readonly ip: string;
  readonly entered: number;
  readonly expires: number;
}

export interface LargeFileTotals {
  readonly here: number;
  readonly hereBytes: number;
  /** Of these bytes, what strangers' pull requests brought. */
  readonly contributedBytes: number;
  readonly missing: number;
  readonly missingBytes: number;
}

export interface ScanRow extends Pick<RepositoryName, "owner" | "identifier" | "area"> {
  /** Of the refs that were searched. */
  readonly version: number;
  /** Branches and tags whose history was searched: as many as are worth telling git about. */
  readonly tips: readonly Oid[];
  /** Second of the last search of everything. */
  readonly fullAt: number;
}

const noFiles: LargeFileTotals = { here: 0, hereBytes: 0, contributedBytes: 0, missing: 0, missingBytes: 0 };

const prefixed = (kind: string, name: RepositoryName): string => `${kind}:${repositoryKey(name)} `;
const totalKey = (name: RepositoryName): string => `total:${repositoryKey(name)}`;
const scanKey = (name: RepositoryName): string => `scan:${repositoryKey(name)}`;

export const largeFile = (
  reader: TableReader,
  name: RepositoryName,
  oid: LargeFileId,
): Promise<LargeFileRow | undefined> => reader.row<LargeFileRow>("lfs", prefixed("file", name) + oid);

export async function* largeFiles(
  reader: TableReader,
  name: RepositoryName,
  after?: LargeFileId,
): AsyncIterable<readonly [LargeFileId, LargeFileRow]> {
  const prefix = prefixed("file", name);
  const range = { prefix, ...(after === undefined ? {} : { after: prefix + after }) };
  for await (const [key, row] of reader.rows<LargeFileRow>("lfs", range)) {
    yield [key.slice(prefix.length) as LargeFileId, row];
  }
}

export const largeFileTotals = async (reader: TableReader, name: RepositoryName): Promise<LargeFileTotals> =>
  (await reader.row<LargeFileTotals>("lfs", totalKey(name))) ?? noFiles;

/** Over all repositories. */
export async function allLargeFiles(reader: TableReader): Promise<LargeFileTotals> {
  let sum = noFiles;
  for await (const [, one] of reader.rows<LargeFileTotals>("lfs", { prefix: "total:" })) sum = added(sum, one, 1);
  return sum;
}

const added = (a: LargeFileTotals, b: LargeFileTotals, sign: 1 | -1): LargeFileTotals => ({
  here: a.here + sign * b.here,
  hereBytes: a.hereBytes + sign * b.hereBytes,
  contributedBytes: a.contributedBytes + sign * b.contributedBytes,
  missing: a.missing + sign * b.missing,
  missingBytes: a.missingBytes + sign * b.missingBytes,
});

const totalsOf = ({ size, isHere, contributor }: LargeFileRow): LargeFileTotals =>
  isHere
    ? { ...noFiles, here: 1, hereBytes: size, contributedBytes: contributor === undefined ? 0 : size }
    : { ...noFiles, missing: 1, missingBytes: size };

/** Undefined deletes it. */
export async function setLargeFile(
  tx: Transaction,
  name: RepositoryName,
  oid: LargeFileId,
  row: LargeFileRow | undefined,
): Promise<void> {
  const before = await largeFile(tx, name, oid);
  let totals = await largeFileTotals(tx, name);
  if (before) totals = added(totals, totalsOf(before), -1);
  if (row) totals = added(totals, totalsOf(row), 1);
  const key = prefixed("file", name) + oid;
  const index = `oid:${oid} ${repositoryKey(name)}`;
  if (row) tx.setRow("lfs", key, row);
  else tx.deleteRow("lfs", key);
  if (row?.isHere)
    tx.setRow("lfs", index, { owner: name.owner, identifier: name.identifier, area: name.area ?? "main" });
  else tx.deleteRow("lfs", index);
  if (totals.here + totals.missing > 0) tx.setRow("lfs", totalKey(name), totals);
  else tx.deleteRow("lfs", totalKey(name));
}

/** Repositories that have it. */
export async function holdersOf(reader: TableReader, oid: LargeFileId, limit: number): Promise<RepositoryName[]> {
  const found: RepositoryName[] = [];
  for await (const [, name] of reader.rows<RepositoryName>("lfs", { prefix: `oid:${oid} `, limit })) found.push(name);
  return found;
}

export const setUnclaimedFile = (tx: Transaction, row: UnclaimedFileRow): void =>
  tx.setRow("lfs", prefixed("unclaimed", row) + row.oid, row);

export const deleteUnclaimedFile = (tx: Transaction, name: RepositoryName, oid: LargeFileId): void =>
  tx.deleteRow("lfs", prefixed("unclaimed", name) + oid);

export async function unclaimedFiles(reader: TableReader): Promise<UnclaimedFileRow[]> {
  const found: UnclaimedFileRow[] = [];
  for await (const [, row] of reader.rows<UnclaimedFileRow>("lfs", { prefix: "unclaimed:" })) found.push(row);
  return found;
}

export async function hasUnclaimedFiles(reader: TableReader, name: RepositoryName): Promise<boolean> {
  for await (const _ of reader.rows("lfs", { prefix: prefixed("unclaimed", name), limit: 1 })) return true;
  return false;
}

/** What another machine changed: files by repository, and keys of those that nothing names (`<repository> <file>`). */
export function changedFiles(commit: Commit): {
  readonly here: readonly (readonly [RepositoryName, LargeFileId])[];
  readonly unclaimed: readonly string[];
} {
  const here: [RepositoryName, LargeFileId][] = [];
  const unclaimed: string[] = [];
  for (const row of commit.changedKeys("lfs")) {
    if (row.startsWith("unclaimed:")) unclaimed.push(row.slice("unclaimed:".length));
    if (!row.startsWith("file:")) continue;
    const [key = "", oid] = row.slice("file:".length).split(" ");
    const name = repositoryOfKey(key);
    if (name && isLargeFileId(oid)) here.push([name, oid]);
  }
  return { here, unclaimed };
}

export const scanOf = (reader: TableReader, name: RepositoryName): Promise<ScanRow | undefined> =>
  reader.row<ScanRow>("lfs", scanKey(name));

export const setScan = (tx: Transaction, row: ScanRow): void => tx.setRow("lfs", scanKey(row), row);

export async function scans(reader: TableReader): Promise<ScanRow[]> {
  const found: ScanRow[] = [];
  for await (const [, row] of reader.rows<ScanRow>("lfs", { prefix: "scan:" })) found.push(row);
  return found;
}

/** Searches that a commit wrote. */
export async function changedScans(reader: TableReader, commit: Commit): Promise<ScanRow[]> {
  const found: ScanRow[] = [];
  for (const key of commit.changedKeys("lfs")) {
    const row = key.startsWith("scan:") ? await reader.row<ScanRow>("lfs", key) : undefined;
    if (row) found.push(row);
  }
  return found;
}

export const isSearched = async (reader: TableReader, name: RepositoryName, id: EventId): Promise<boolean> =>
  (await reader.row("lfs", prefixed("pr", name) + id)) !== undefined;

export const setSearched = (tx: Transaction, name: RepositoryName, id: EventId): void =>
  tx.setRow("lfs", prefixed("pr", name) + id, 1);

export async function hasLargeFileRows(reader: TableReader, name: RepositoryName): Promise<boolean> {
  for (const prefix of [totalKey(name), scanKey(name), prefixed("unclaimed", name)]) {
    for await (const _ of reader.rows("lfs", { prefix, limit: 1 })) return true;
  }
  return false;
}

/** The repository's directory is gone, and the files with it. */
export async function removeLargeFiles(tx: Transaction, name: RepositoryName): Promise<void> {
  const keys = [totalKey(name), scanKey(name)];
  for (const kind of ["file", "unclaimed", "pr"]) {
    const prefix = prefixed(kind, name);
    for await (const [key] of tx.rows("lfs", { prefix })) {
      keys.push(key);
      if (kind === "file") keys.push(`oid:${key.slice(prefix.length)} ${repositoryKey(name)}`);
    }
  }
  for (const key of keys) tx.deleteRow("lfs", key);
}
