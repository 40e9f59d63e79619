// `repos fsck` and `repos gc`: long work over one repository or all of them, one after the other.

import { type CatalogueRow, catalogueRow, catalogueRows } from "../catalogue/repositories.js";
import { diskAddress, type PlacedName } from "../git/address.js";
import type { RepositoryStore } from "../git/types.js";
import { parseNpub } from "../nostr/nip19.js";
import { contributorRepositories } from "../purgatory/contributors.js";
import { keepHouse } from "../purgatory/housekeeping.js";
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

/** Those with a directory; undefined: nothing has this name. */
async function placesFor(
  { store }: AdminParts,
  repositories: RepositoryStore,
  name: PlacedName | undefined,
): Promise<(CatalogueRow | PlacedName)[] | undefined> {
  if (name?.area === "prs") return (await repositories.exists(diskAddress(name))) ? [name] : undefined;
  if (name) {
    const row = await catalogueRow(store, name);
    return row && [row].filter(hasDirectory);
  }
  const places: (CatalogueRow | PlacedName)[] = [];
  for await (const row of catalogueRows(store)) if (hasDirectory(row)) places.push(row);
  return [...places, ...(await contributorRepositories(repositories))];
}

const unknown = (name: PlacedName | undefined) =>
  refusal("unknown", `no repository ${name ? repositoryText(name) : ""} is known here`);

export async function checkRepositories(
  parts: AdminParts,
  name: PlacedName | undefined,
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<CheckResult>> {
  const repositories = await parts.repositories();
  const places = await placesFor(parts, repositories, name);
  if (!places) return unknown(name);
  const unsound: CheckedRepository[] = [];
  for (const [index, place] of places.entries()) {
    signal.throwIfAborted();
    const problems = await problemsOf(parts, repositories, place);
    if (problems.length > 0) unsound.push({ repository: repositoryText(place), problems });
    progress(index + 1, places.length, "checking");
  }
  return done({ checked: places.length, unsound, strays: name ? [] : await straysOf(parts, repositories) });
}

async function problemsOf(
  parts: AdminParts,
  repositories: RepositoryStore,
  place: CatalogueRow | PlacedName,
): Promise<string[]> {
  const address = diskAddress(place);
  if (!(await repositories.exists(address))) return ["the repository's directory is missing"];
  const repository = repositories.open(address);
  const problems = [...(await repository.fsck())];
  // What is too broken to be mended here is told all the same.
  if (problems.length > 0) await parts.running?.damaged(place).catch((error) => problems.push(`not mended: ${error}`));
  // Nothing governs what lies under `/prs/`.
  if (!("governing" in place) || place.governing === null || place.status === "deleted") return problems;
  const state = await governingState(parts.store, place.governing);
  if (!state) return [...problems, `its governing state ${place.governing} is not stored`];
  const differences = refDifferences(await repository.refs(), state, place.partial).filter((one) => !one.recorded);
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
  { name, cruft }: { readonly name: PlacedName | undefined; readonly cruft: boolean },
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<HousekeepingResult>> {
  const repositories = await parts.repositories();
  const places = await placesFor(parts, repositories, name);
  if (!places) return unknown(name);
  const target = name ? repositoryText(name) : "all repositories";
  await parts.store.transact((tx) => noteChange(tx, parts.clock, caller, { what: "housekeeping", target }));
  const result = { done: 0, busy: [] as string[], failed: [] as string[], bytesBefore: 0, bytesAfter: 0 };
  const offline = { ...parts, repositories, graceDays: () => parts.config().gitCruftGraceDays };
  for (const [index, place] of places.entries()) {
    signal.throwIfAborted();
    const address = diskAddress(place);
    if (await repositories.exists(address)) {
      const kind = cruft ? "cruft" : "geometric";
      const report = await (parts.running?.housekeep(address, kind, signal) ??
        keepHouse(offline, address, kind, signal));
      if (report.result === "done") result.done++;
      else result[report.result === "failed" ? "failed" : "busy"].push(repositoryText(place));
      result.bytesBefore += report.before.bytes;
      result.bytesAfter += report.after.bytes;
    }
    progress(index + 1, places.length, "housekeeping");
  }
  return done(result);
}
