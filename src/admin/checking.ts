// `repos fsck` and `repos gc`: long work over one repository or all of them, one after the other.

import { type CatalogueRow, catalogueRow, catalogueRows } from "../admission/catalogue.js";
import type { RepositoryName } from "../admission/names.js";
import type { RepositoryStore } from "../git/types.js";
import { isPubkey } from "../nostr/ids.js";
import { parseNpub } from "../nostr/nip19.js";
import { keepHouse } from "../purgatory/housekeeping.js";
import { diskAddress, type PlacedName, underPrs } from "../purgatory/repository-address.js";
import { type Caller, noteChange } from "./audit.js";
import { repositoryText } from "./naming.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts, Progress } from "./parts.js";
import { differenceText, refDifferences } from "./refs-compare.js";
import { governingState } from "./repository-view.js";

export interface CheckedRepository {
  readonly repository: string;
  readonly problems: readonly string[];
}

export interface CheckResult {
  readonly checked: number;
  readonly unsound: readonly CheckedRepository[];
  /** Directories under the git data path that no catalogue row names; they are not served. */
  readonly strays: readonly string[];
}

const hasDirectory = (row: CatalogueRow): boolean => row.status !== "soft";

async function rowsFor(parts: AdminParts, name: RepositoryName | undefined): Promise<CatalogueRow[] | undefined> {
  if (name) {
    const row = await catalogueRow(parts.store, name);
    return row && [row];
  }
  const rows: CatalogueRow[] = [];
  for await (const row of catalogueRows(parts.store)) rows.push(row);
  return rows;
}

const unknown = (name: RepositoryName | undefined) =>
  refusal("unknown", `no repository ${name ? repositoryText(name) : ""} is known here`);

export async function checkRepositories(
  parts: AdminParts,
  name: RepositoryName | undefined,
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<CheckResult>> {
  const rows = (await rowsFor(parts, name))?.filter(hasDirectory);
  if (!rows) return unknown(name);
  const repositories = await parts.repositories();
  const unsound: CheckedRepository[] = [];
  for (const [index, row] of rows.entries()) {
    signal.throwIfAborted();
    const problems = await problemsOf(parts, repositories, row);
    if (problems.length > 0) unsound.push({ repository: repositoryText(row), problems });
    progress(index + 1, rows.length, "checking");
  }
  const contributors = name ? [] : await contributorRepositories(repositories);
  for (const place of contributors) {
    signal.throwIfAborted();
    const problems = await repositories.open(diskAddress(place)).fsck();
    if (problems.length > 0) unsound.push({ repository: `prs/${repositoryText(place)}`, problems });
  }
  const checked = rows.length + contributors.length;
  return done({ checked, unsound, strays: name ? [] : await straysOf(parts, repositories) });
}

/** What lies under `/prs/` (GRASP-06): no catalogue row names it. */
async function contributorRepositories(repositories: RepositoryStore): Promise<PlacedName[]> {
  const found: PlacedName[] = [];
  for await (const { npubOrOwner: owner, identifier, area } of repositories.list()) {
    if (area === "prs" && isPubkey(owner)) found.push(underPrs({ owner, identifier }));
  }
  return found;
}

async function problemsOf(parts: AdminParts, repositories: RepositoryStore, row: CatalogueRow): Promise<string[]> {
  const address = diskAddress(row);
  if (!(await repositories.exists(address))) return ["the repository's directory is missing"];
  const repository = repositories.open(address);
  const problems = [...(await repository.fsck())];
  // What is too broken to be mended here is told all the same.
  if (problems.length > 0) await parts.running?.damaged(row).catch((error) => problems.push(`not mended: ${error}`));
  if (row.governing === null || row.status === "deleted") return problems;
  const state = await governingState(parts.store, row.governing);
  if (!state) return [...problems, `its governing state ${row.governing} is not stored`];
  const differences = refDifferences(await repository.refs(), state, row.partial).filter((one) => !one.recorded);
  return [...problems, ...differences.map(differenceText)];
}

async function straysOf(parts: AdminParts, repositories: RepositoryStore): Promise<string[]> {
  const strays: string[] = [];
  for await (const { npubOrOwner, identifier, area } of repositories.list()) {
    if (area !== "main") continue;
    const owner = parseNpub(npubOrOwner);
    const row = owner && (await catalogueRow(parts.store, { owner, identifier }));
    if (!row) strays.push(`${npubOrOwner}/${identifier}`);
  }
  return strays;
}

export interface HousekeepingResult {
  readonly done: number;
  /** A push or other work was under way there, or came. */
  readonly busy: readonly string[];
  readonly failed: readonly string[];
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

export async function housekeepRepositories(
  parts: AdminParts,
  caller: Caller,
  { name, cruft }: { readonly name: RepositoryName | undefined; readonly cruft: boolean },
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<HousekeepingResult>> {
  const rows: PlacedName[] | undefined = (await rowsFor(parts, name))?.filter(hasDirectory);
  if (!rows) return unknown(name);
  const repositories = await parts.repositories();
  if (!name) rows.push(...(await contributorRepositories(repositories)));
  const target = name ? repositoryText(name) : "all repositories";
  await parts.store.transact((tx) => noteChange(tx, parts.clock, caller, { what: "housekeeping", target }));
  const result = { done: 0, busy: [] as string[], failed: [] as string[], bytesBefore: 0, bytesAfter: 0 };
  const offline = { ...parts, repositories, graceDays: () => parts.config().gitCruftGraceDays };
  for (const [index, row] of rows.entries()) {
    signal.throwIfAborted();
    const address = diskAddress(row);
    if (await repositories.exists(address)) {
      const kind = cruft ? "cruft" : "geometric";
      const report = await (parts.running?.housekeep(address, kind, signal) ??
        keepHouse(offline, address, kind, signal));
      if (report.result === "done") result.done++;
      else result[report.result === "failed" ? "failed" : "busy"].push(repositoryText(row));
      result.bytesBefore += report.before.bytes;
      result.bytesAfter += report.after.bytes;
    }
    progress(index + 1, rows.length, "housekeeping");
  }
  return done(result);
}
