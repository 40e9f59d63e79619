// `repos list|show|fsck|gc`: what the catalogue says, what is on disk, and whether the two agree with what was signed;
// checks and housekeeping of one repository or of all, one after the other.

import { type DecisionRecord, decisionsAbout } from "../catalogue/decisions.js";
import { type LargeFileTotals, largeFileTotals } from "../catalogue/large-files.js";
import {
  type CatalogueRow,
  catalogueRow,
  catalogueRows,
  everyRow,
  type RepositoryName,
  type RepositoryStatus,
  repositoryKey,
} from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import { keepHouse } from "../git/housekeeping-scheduler.js";
import type { RefTable } from "../git/ref-tables.js";
import type { Repositories } from "../git/repositories.js";
import { largeFileFaults, largeFileFaultText } from "../lfs/check.js";
import { type EventId, kinds, type Pubkey } from "../nostr/event.js";
import { type ObjectFormat, type RepositoryState, stateOf } from "../nostr/nip34.js";
import { wantedRefs } from "../purgatory/plan.js";
import type { Reader } from "../store/port.js";
import { type AdminParts, type Caller, done, noteChange, type Outcome, type Progress, refusal } from "./context.js";
import { type MaintainerStanding, standingsOf } from "./maintainers.js";
import { differenceText, type RefDifference, repositoryText } from "./naming.js";
import type { CheckedOf } from "./operations.js";

export interface RepositoryLine {
  readonly repository: string;
  readonly status: RepositoryStatus;
  readonly since: number;
  readonly mark: CatalogueRow["mark"];
  readonly governing: EventId | null;
  readonly partial: CatalogueRow["partial"];
  readonly isArchive: boolean;
  readonly format: ObjectFormat;
  readonly pushes: number;
  /** Received by pushes and hunts; `repos show` looks at the disk. */
  readonly receivedBytes: number;
}

const lineOf = (row: CatalogueRow): RepositoryLine => ({
  repository: repositoryText(row),
  status: row.status,
  since: row.since,
  mark: row.mark,
  governing: row.governing,
  partial: row.partial,
  isArchive: row.archive !== null,
  format: row.format ?? "sha1",
  pushes: row.counters.pushes,
  receivedBytes: row.counters.bytes,
});

export interface RepositoryLines {
  readonly repositories: readonly RepositoryLine[];
  /** More match than were asked for. */
  readonly more: boolean;
}

export async function listRepositories(
  { store }: AdminParts,
  { status, owner, limit }: CheckedOf<"repos.list">,
): Promise<RepositoryLines> {
  const found: RepositoryLine[] = [];
  for await (const row of catalogueRows(store, owner)) {
    if (status !== undefined && row.status !== status) continue;
    if (found.length === limit) return { repositories: found, more: true };
    found.push(lineOf(row));
  }
  return { repositories: found, more: false };
}

export interface RepositoryDetails extends RepositoryLine {
  readonly announcement: EventId | null;
  readonly maintainers: readonly string[];
  /** Why each key is a maintainer, or is not. */
  readonly standings: readonly MaintainerStanding[];
  readonly waitingEvents: number;
  readonly disk: {
    readonly bytes: number;
    readonly refs: number;
    readonly head: string;
    readonly unclaimedPushes: number;
  } | null;
  readonly largeFiles: LargeFileTotals;
  /** Other servers that were asked for those that are missing. */
  readonly askedForLargeFiles: readonly { readonly url: string; readonly at: number; readonly answer: string }[];
  /** What the counters are held against. */
  readonly quota: {
    readonly repositoryBytes: number;
    readonly ownerUsedBytes: number;
    readonly ownerBytes: number;
  };
  /** Where refs and the governing state disagree; null when there is nothing to compare. */
  readonly differences: readonly RefDifference[] | null;
  readonly latestDecisions: readonly DecisionRecord[];
}

const decisionsShown = 5;

export async function showRepository(parts: AdminParts, name: RepositoryName): Promise<Outcome<RepositoryDetails>> {
  const { store } = parts;
  await parts.running?.decisionsWritten();
  const row = await catalogueRow(store, name);
  if (!row) return refusal("unknown", `no repository ${repositoryText(name)} is known here`);
  const { owner: pubkey, identifier } = name;
  const announcement = await store.latest({ kind: kinds.announcement, pubkey, identifier });
  const repositories = await parts.repositories();
  const address = diskAddress(name);
  const repository = (await repositories.exists(address)) ? repositories.open(address) : undefined;
  const table = await repository?.refs();
  const state = await governingState(store, row);
  const standings = await standingsOf(store, name);
  return done({
    ...lineOf(row),
    announcement: announcement?.event.id ?? null,
    maintainers: standings.filter(({ decides }) => decides).map(({ npub }) => npub),
    standings,
    waitingEvents: await waitingAbout(store, name),
    disk:
      repository && table
        ? {
            bytes: await repository.sizeBytes(),
            refs: table.refs.size,
            head: table.head,
            unclaimedPushes: (await repository.unclaimed()).length,
          }
        : null,
    largeFiles: await largeFileTotals(store, name),
    askedForLargeFiles: parts.running?.askedForLargeFiles(name) ?? [],
    quota: {
      repositoryBytes: parts.config().repositoryMaxBytes,
      ownerUsedBytes: await receivedBytesOf(store, name.owner),
      ownerBytes: parts.config().npubMaxBytes,
    },
    differences: table && state ? refDifferences(table, state, row.partial) : null,
    latestDecisions: await decisionsAbout(store, name, decisionsShown),
  });
}

/** What pushes and hunts brought for all repositories of one key. */
async function receivedBytesOf(reader: Reader, owner: Pubkey): Promise<number> {
  let bytes = 0;
  for await (const row of catalogueRows(reader, owner)) bytes += row.counters.bytes;
  return bytes;
}

export async function governingState(
  reader: Reader,
  { governing }: Pick<CatalogueRow, "governing">,
): Promise<RepositoryState | undefined> {
  const stored = governing === null ? undefined : await reader.event(governing);
  return stored && stateOf(stored.event);
}

export async function waitingAbout(reader: Reader, name: RepositoryName): Promise<number> {
  let count = 0;
  for await (const _ of reader.rows("purgatory", { prefix: `r:${repositoryKey(name)}:` })) count++;
  return count;
}

/** A repository's refs beside what its governing state signed. */
export function refDifferences(
  table: Pick<RefTable, "head" | "refs">,
  state: RepositoryState,
  partial: CatalogueRow["partial"],
): RefDifference[] {
  const { refs: wanted } = wantedRefs(state);
  const known = new Set(partial?.missingRefs ?? []);
  const differences: RefDifference[] = [];
  for (const [ref, oid] of wanted) {
    const here = table.refs.get(ref)?.oid ?? null;
    if (here !== oid) differences.push({ ref, here, signed: oid, recorded: known.has(ref) });
  }
  for (const [ref, { oid }] of table.refs) {
    const isStates = ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");
    if (isStates && !wanted.has(ref)) differences.push({ ref, here: oid, signed: null, recorded: false });
  }
  return differences;
}

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
async function placesFor({ store }: AdminParts, name: RepositoryName | undefined): Promise<CatalogueRow[] | undefined> {
  if (name) {
    const row = await catalogueRow(store, name);
    return row && [row].filter(hasDirectory);
  }
  const places: CatalogueRow[] = [];
  for await (const row of everyRow(store)) if (hasDirectory(row)) places.push(row);
  return places;
}

const unknown = (name: RepositoryName | undefined) =>
  refusal("unknown", `no repository ${name ? repositoryText(name) : ""} is known here`);

export async function checkRepositories(
  parts: AdminParts,
  name: RepositoryName | undefined,
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<CheckResult>> {
  const repositories = await parts.repositories();
  const places = await placesFor(parts, name);
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

async function problemsOf(parts: AdminParts, repositories: Repositories, place: CatalogueRow): Promise<string[]> {
  const address = diskAddress(place);
  if (!(await repositories.exists(address))) return ["the repository's directory is missing"];
  const repository = repositories.open(address);
  const problems = [...(await repository.fsck())];
  // What is too broken to be mended here is told all the same.
  if (problems.length > 0) await parts.running?.damaged(place).catch((error) => problems.push(`not mended: ${error}`));
  if (parts.running) problems.push(...(await parts.running.checkLargeFiles(place)));
  else if (parts.config().lfsEnable)
    for await (const fault of largeFileFaults(parts.store, repository.directory, place))
      problems.push(largeFileFaultText(fault));
  const files = await repository.refsOnDisk();
  // A command without a server looks and changes nothing.
  const mended = parts.running ? await repository.mendFiles() : [];
  problems.push(...mended.map((ref) => `${ref} was changed from outside: it was written anew`));
  if (place.governing === null || place.status === "deleted") return problems;
  const state = await governingState(parts.store, place);
  if (!state) return [...problems, `its newest signed state ${place.governing} is not stored`];
  const differences = refDifferences(files, state, place.partial).filter((one) => !one.recorded);
  return [...problems, ...differences.map(differenceText)];
}

async function straysOf(parts: AdminParts, repositories: Repositories): Promise<string[]> {
  const strays: string[] = [];
  for await (const { npubOrOwner, identifier, address } of repositories.list(["main"])) {
    if (!address || !(await catalogueRow(parts.store, address))) strays.push(`${npubOrOwner}/${identifier}`);
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
  /** Of these, packed objects: the rest are indexes and bitmaps. */
  readonly objectBytesBefore: number;
  readonly objectBytesAfter: number;
}

export async function housekeepRepositories(
  parts: AdminParts,
  caller: Caller,
  { name, cruft }: { readonly name: RepositoryName | undefined; readonly cruft: boolean },
  progress: Progress,
  signal: AbortSignal,
): Promise<Outcome<HousekeepingResult>> {
  const repositories = await parts.repositories();
  const places = await placesFor(parts, name);
  if (!places) return unknown(name);
  const target = name ? repositoryText(name) : "all repositories";
  await parts.store.transact((tx) => noteChange(tx, parts.clock, caller, { what: "housekeeping", target }));
  const result = {
    done: 0,
    busy: [] as string[],
    failed: [] as string[],
    ...{ bytesBefore: 0, bytesAfter: 0, objectBytesBefore: 0, objectBytesAfter: 0 },
  };
  const offline = { ...parts, repositories };
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
      result.objectBytesBefore += report.before.objectBytes;
      result.objectBytesAfter += report.after.objectBytes;
    }
    progress(index + 1, places.length, "housekeeping");
  }
  return done(result);
}
