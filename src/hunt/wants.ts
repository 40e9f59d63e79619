// What one repository lacks and where to look for it, read from the store and from git. Changes nothing.
// purgatory.md "Hunting": states and pull requests that wait, missing refs of partial states, what repair found.

import { countingAnnouncements, maintainersOf } from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  catalogueRow,
  isReleased,
  type RepositoryName,
  repositoryNamed,
  rowForData,
  takesStates,
} from "../catalogue/repositories.js";
import {
  type WaitingPhase,
  waitingEntries,
  waitingEntry,
  waitingEvent,
  waitingHints,
  waitingKeys,
} from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import type { Repositories } from "../git/repositories.js";
import type { EventId } from "../nostr/event.js";
import { announcementOf, isOid, type Oid, pullRequestOf, stateOf } from "../nostr/nip34.js";
import { wantedRefs } from "../purgatory/plan.js";
import type { Reader, TableReader } from "../store/port.js";
import type { HuntAnnouncement, WaitingItem, WaitingSource } from "./core/messages.js";

/** What something that waits here lacks. */
export interface MissingItem extends WaitingItem {
  /** A pull request's own servers, for its tip only. */
  readonly clone?: readonly string[];
}

export interface Wants {
  readonly items: readonly MissingItem[];
  readonly announcements: readonly HuntAnnouncement[];
  /** All that a state waits for is here: it is to be released, not hunted for. */
  readonly isReady: boolean;
}

/** Found by repair: not in any table, because a look at the repository finds it again. */
export interface Found {
  readonly missing: readonly Oid[];
  /** Served pull requests whose commit is not here. */
  readonly pullRequests: readonly { readonly event: EventId; readonly tip: Oid; readonly clone: readonly string[] }[];
}

export const nothingFound: Found = { missing: [], pullRequests: [] };
export const isNothing = ({ missing, pullRequests }: Found): boolean => missing.length + pullRequests.length === 0;
const nothing: Wants = { items: [], announcements: [], isReady: false };

// More than purgatory lets wait for one repository, so that a change of its caps loses nothing.
const maxEntries = 1_000;

interface WantsParts {
  readonly store: Reader;
  readonly repositories: Repositories;
  readonly pullRequests: PullRequestReader;
  /** Tips of pull requests that were not here at the last look, if nothing came since. */
  readonly stillMissing: ReadonlySet<Oid>;
}

export async function wantsOf(parts: WantsParts, name: RepositoryName, found: Found = nothingFound): Promise<Wants> {
  const { store: reader } = parts;
  const row = await rowForData(reader, name, 0);
  if (!row || !takesStates(row)) return nothing;
  const waiting = await parts.pullRequests.under(reader, waitingKeys.repositoryKind(row, "pull-request"), maxEntries);
  // Under `/prs/`, which nothing announces, only pull requests are looked for, at their own servers.
  const isUnderPrs = row.area === "prs";
  const candidates = [
    ...(await waitingStates(reader, row)),
    ...(isUnderPrs ? await waitingNowhereElse(reader, waiting) : waiting).map((one) => itemOf(one, row)),
    ...(await partialState(reader, row)),
    ...foundByRepair(isUnderPrs ? { ...found, missing: [] } : found),
  ];
  if (candidates.length === 0) return nothing;
  const missing = await missingHere(parts, name, candidates, new Set(found.missing));
  const items = candidates
    .map((candidate) => ({ ...candidate, ids: candidate.ids.filter((id) => missing.has(id)) }))
    .filter(({ ids }) => ids.length > 0);
  const isReady = candidates.some(({ kind, ids }) => kind === "state" && !ids.some((id) => missing.has(id)));
  if (items.length === 0) return { ...nothing, isReady };
  return { isReady, items, announcements: isUnderPrs ? [] : await huntAnnouncements(reader, name, row) };
}

/** Those that no served repository waits for. */
async function waitingNowhereElse(
  reader: Reader,
  waiting: readonly WaitingPullRequest[],
): Promise<WaitingPullRequest[]> {
  const found: WaitingPullRequest[] = [];
  for (const one of waiting) {
    const names = one.repositories.flatMap((text) => repositoryNamed(text) ?? []);
    const rows = await Promise.all(names.map((name) => catalogueRow(reader, name)));
    if (!rows.some(isReleased)) found.push(one);
  }
  return found;
}

/** Whoever sends a client's state pushes next; not to a mirror, whose data comes by hunting. */
const sourceOf = (isClients: boolean, row: CatalogueRow): WaitingSource =>
  isClients && !row.archive ? "client" : "sync";

async function waitingStates(reader: Reader, row: CatalogueRow): Promise<MissingItem[]> {
  const entries = await waitingEntries(reader, waitingKeys.repositoryKind(row, "state"), maxEntries);
  return entries.flatMap((entry) => {
    const state = entry.releasable ? stateOf(waitingEvent(entry)) : undefined;
    if (!state) return [];
    const { refs, wellFormed } = wantedRefs(state);
    if (!wellFormed) return [];
    const source = sourceOf(entry.source.type === "client", row);
    return { id: entry.id, kind: "state", source, soft: entry.phase === "soft", ids: [...new Set(refs.values())] };
  });
}

function itemOf({ id, phase, isClients, tip, clone }: WaitingPullRequest, row: CatalogueRow): MissingItem {
  const soft = phase === "soft";
  return { id, kind: "pull-request", source: sourceOf(isClients, row), soft, ids: tip ? [tip] : [], clone };
}

/** Refs the governing state names that were not here when it was released. */
async function partialState(reader: Reader, { partial }: CatalogueRow): Promise<MissingItem[]> {
  if (!partial) return [];
  const stored = await reader.event(partial.state);
  const state = stored && stateOf(stored.event);
  if (!state) return [];
  const { refs } = wantedRefs(state);
  const named = new Set<string>(partial.missingRefs);
  const ids = [...refs].flatMap(([ref, oid]) => (named.has(ref) ? [oid] : []));
  return [{ id: `partial:${partial.state}`, kind: "repair", source: "sync", soft: true, ids }];
}

function foundByRepair({ missing, pullRequests }: Found): MissingItem[] {
  const soft = { source: "sync", soft: true } as const;
  return [
    ...(missing.length > 0 ? [{ id: "repair", kind: "repair" as const, ids: missing, ...soft }] : []),
    ...pullRequests.map(({ event: id, tip, clone }) => ({
      id,
      kind: "pull-request" as const,
      ids: [tip],
      clone,
      ...soft,
    })),
  ];
}

/** What repair found is damaged below: the usual look, which trusts refs, would not see it. */
async function missingHere(
  { repositories, stillMissing }: WantsParts,
  name: RepositoryName,
  candidates: readonly MissingItem[],
  damaged: ReadonlySet<Oid>,
): Promise<ReadonlySet<Oid>> {
  const asked = new Set<Oid>();
  const missing = new Set<Oid>(damaged);
  for (const { kind, ids } of candidates) {
    for (const id of ids) {
      if (kind === "pull-request" && stillMissing.has(id)) missing.add(id);
      else if (!damaged.has(id)) asked.add(id);
    }
  }
  const address = diskAddress(name);
  if (!(await repositories.exists(address))) return new Set([...missing, ...asked]);
  const absent = await repositories.open(address).missingObjects([...asked], { evenLost: true });
  // A state that wants the same has had it looked for.
  for (const id of asked)
    if (absent.has(id)) missing.add(id);
    else missing.delete(id);
  return missing;
}

/** The owner's directed set only: whoever merely lists the owner names no server here (threats.md rows 12 and 17). */
export async function huntAnnouncements(
  reader: Reader,
  name: RepositoryName,
  row: CatalogueRow,
): Promise<HuntAnnouncement[]> {
  if (row.archive) return [{ isOwners: true, clone: row.archive.cloneUrls }];
  const found: HuntAnnouncement[] = [];
  // An owner who follows a lead may be no maintainer: the owner's own announcement says where copies are all the same.
  for (const member of new Set([name.owner, ...(await maintainersOf(reader, name))])) {
    for (const event of await countingAnnouncements(reader, member, name.identifier)) {
      const clone = announcementOf(event)?.clone ?? [];
      if (clone.length > 0) found.push({ isOwners: member === name.owner, clone });
    }
  }
  return found;
}

/** Where the announcements of a repository say that copies of it are; nothing announces what lies under `/prs/`. */
export async function announcedCloneUrls(reader: Reader, row: CatalogueRow): Promise<string[]> {
  if (row.area === "prs") return [];
  return (await huntAnnouncements(reader, row, row)).flatMap(({ clone }) => clone);
}

interface WaitingPullRequest {
  readonly id: EventId;
  readonly phase: WaitingPhase;
  readonly isClients: boolean;
  /** None: it can only expire. */
  readonly tip: Oid | undefined;
  readonly clone: readonly string[];
  /** `30617:<owner>:<identifier>` of each repository it concerns. */
  readonly repositories: readonly string[];
  readonly bytes: number;
}

const maxBytes = 16 * 2 ** 20;

/**
 * Waiting pull requests as the hunt needs them. A repository is looked at again with each that comes, and thousands may
 * wait there: an entry is read and parsed once, not at every look. Keeps what it read within a bound, the newest
 * longest.
 */
export class PullRequestReader {
  readonly #read = new Map<EventId, WaitingPullRequest>();
  #bytes = 0;

  /** Those under an index prefix whose tip could be an object, at most `limit`. */
  async under(reader: TableReader, prefix: string, limit: number): Promise<WaitingPullRequest[]> {
    const found: WaitingPullRequest[] = [];
    for (const { id, phase } of await waitingHints(reader, prefix, limit)) {
      const known = this.#read.get(id);
      // Sent again by a client it waits in another phase: nothing else of an entry changes.
      const one = known?.phase === phase ? known : await this.#readAgain(reader, id);
      if (one?.tip) found.push(one);
    }
    return found;
  }

  async #readAgain(reader: TableReader, id: EventId): Promise<WaitingPullRequest | undefined> {
    this.#forget(id);
    const entry = await waitingEntry(reader, id);
    if (!entry) return undefined;
    const pullRequest = entry.releasable ? pullRequestOf(waitingEvent(entry)) : undefined;
    const { phase, repositories, bytes, source } = entry;
    const tip = isOid(pullRequest?.tip) ? pullRequest.tip : undefined;
    const one = {
      id,
      phase,
      isClients: source.type === "client",
      tip,
      clone: pullRequest?.clone ?? [],
      repositories,
      bytes,
    };
    this.#read.set(id, one);
    this.#bytes += bytes;
    for (const oldest of this.#read.keys()) {
      if (this.#bytes <= maxBytes) break;
      this.#forget(oldest);
    }
    return one;
  }

  #forget(id: EventId): void {
    this.#bytes -= this.#read.get(id)?.bytes ?? 0;
    this.#read.delete(id);
  }
}
