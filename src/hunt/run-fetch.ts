// Runs one fetch command for one repository. While the fetch runs, the repository does not expire. A repository without a
// directory gets one, which is removed again if nothing came. What came is counted and released.
// The fetch itself looks up what the server has, then asks for ids in the order FetchPlan gives, each group through a
// quarantine of its own. What came before a failure stays. Git gets the URL at the end of the chain of redirects. Each
// connection after the first needs a permission of its own (`mayConnect`). purgatory.md "Hunting", Fetch; threats.md row 4.

import { type Clock, unixSeconds } from "../base/clock.js";
import {
  bookContributors,
  bookOwners,
  type CatalogueRow,
  catalogueRow,
  isReleased,
  type RepositoryName,
  rowForData,
  takesStates,
} from "../catalogue/repositories.js";
import { waitingEntry } from "../catalogue/waiting.js";
import { diskAddress } from "../git/address.js";
import { fetchFromRemote, type RemoteFetchLimits } from "../git/fetch-remote.js";
import { LauncherError } from "../git/launcher.js";
import type { Repositories } from "../git/repositories.js";
import type { GitRepository } from "../git/repository.js";
import type { Git } from "../git/run.js";
import type { Guard } from "../net/guard.js";
import type { CloneUrl } from "../net/url.js";
import { type EventId, isEventId, type Pubkey } from "../nostr/event.js";
import { formatOf, type Oid } from "../nostr/nip34.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { removeRepository } from "../purgatory/resume.js";
import type { LedBy, Store } from "../store/port.js";
import { FetchPlan } from "./core/fetch-plan.js";
import type { FetchFailureCode, FetchResult, HuntConfig } from "./core/messages.js";
import type { EndedFetch, FetchCommand, FetchLeave } from "./core-driver.js";
import { authorizationFor, type LookUp, lookUp, type OwnAuthorization, type PlainHosts } from "./look-up.js";
import { announcedCloneUrls } from "./wants.js";

interface ServerFetchParts {
  readonly git: Git;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly plainHosts: PlainHosts;
  readonly config: HuntConfig;
  readonly scratchRoot: string;
  /** GRASP-08: our own header for a repository's root URL; absent on public servers. */
  readonly sign?: ((root: string) => string) | undefined;
  /** Every git process that fetched, for the metrics. */
  readonly fetched: (bytes: number, seconds: number) => void;
}

interface ServerFetch {
  readonly url: CloneUrl;
  readonly ids: readonly Oid[];
  readonly maxBytes: number;
  /** Known not to be enough. */
  readonly tooFewBytes: number;
  readonly repository: GitRepository;
  readonly trustRefs: boolean;
  readonly authorization?: OwnAuthorization | undefined;
  readonly mayConnect: (host: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

type ServerFetchResult = FetchResult & { readonly bytes: number };

export interface RunFetchParts {
  readonly store: Store;
  readonly repositories: Repositories;
  readonly purgatory: Purgatory;
  readonly server: ServerFetchParts;
  readonly clock: Clock;
  /** Where one machine hunts for all of a cluster. */
  readonly ledBy?: LedBy | undefined;
}

const nothing: ServerFetchResult = { arrived: [], refused: [], failure: "cancelled", bytes: 0 };

export async function runFetch(
  parts: RunFetchParts,
  command: FetchCommand,
  leave: FetchLeave,
  name: RepositoryName,
  trustRefs: boolean,
): Promise<EndedFetch> {
  const done = parts.purgatory.pushBegins(name);
  try {
    const row = await rowForData(parts.store, name, unixSeconds(parts.clock));
    const author = command.kind === "pull-request" ? await authorOf(parts.store, command.job) : undefined;
    const isGone = command.kind === "pull-request" && author === undefined;
    if (!row || !takesStates(row) || isGone) return { result: nothing, release: done };
    const result = await intoRepository(parts, command, leave, row, author, trustRefs).catch(async (error: unknown) => {
      // The server closes, its owner deleted it in the middle of it, or git's launcher died: nobody is to blame.
      if (
        leave.signal.aborted ||
        error instanceof LauncherError ||
        !(await parts.repositories.exists(diskAddress(name)))
      )
        return nothing;
      throw error;
    });
    return { result, release: () => release(parts, command, author, row, result).finally(done) };
  } catch (error) {
    await done();
    throw error;
  }
}

/** What came is counted and released; until then the repository does not expire. */
async function release(
  parts: RunFetchParts,
  command: FetchCommand,
  author: Pubkey | undefined,
  row: CatalogueRow,
  { arrived, bytes }: ServerFetchResult,
): Promise<void> {
  if (arrived.length > 0) {
    if (row.status === "soft") await parts.purgatory.revive(row, parts.ledBy);
    await countBytes(parts, row, author, bytes);
    if (row.archive) parts.purgatory.archiveBudget.took(bytes);
    const asked = command.kind === "pull-request" ? (command.job as EventId) : undefined;
    await parts.purgatory.fetched(row, asked, parts.ledBy);
    // Its directory was made for this fetch only, unless somebody revived it meanwhile.
  } else if (row.status === "soft") await removeRepository(parts.repositories, row);
}

async function intoRepository(
  parts: RunFetchParts,
  command: FetchCommand,
  leave: FetchLeave,
  row: CatalogueRow,
  author: Pubkey | undefined,
  trustRefs: boolean,
): Promise<ServerFetchResult> {
  const archiveLeft = row.archive ? await parts.purgatory.archiveBudget.leftBytes() : Number.POSITIVE_INFINITY;
  if (archiveLeft === 0) return { ...nothing, failure: "archive-full" };
  const left = await parts.purgatory.huntLeft(row, author);
  if (left === 0) return { ...nothing, failure: "quota-full" };
  const maxBytes = Math.min(command.maxBytes, left, archiveLeft);
  const { url, ids, tooFewBytes } = command;
  const { sign } = parts.server;
  const authorization = sign && authorizationFor(await announcedCloneUrls(parts.store, row), sign);
  const address = diskAddress(row);
  // Housekeeping stays away: what comes in rests on objects that no ref holds yet.
  const result = await parts.repositories.whileUsed(address, async () => {
    const repository = await parts.repositories.create(address);
    const fetch = { url, ids, maxBytes, tooFewBytes, repository, trustRefs, authorization };
    return fetchFromServer(parts.server, { ...fetch, ...leave });
  });
  if (result.failure !== "too-large" || maxBytes === command.maxBytes) return result;
  return { ...result, failure: maxBytes === archiveLeft ? "archive-full" : "quota-full" };
}

async function fetchFromServer(parts: ServerFetchParts, fetch: ServerFetch): Promise<ServerFetchResult> {
  if (fetch.maxBytes <= fetch.tooFewBytes) return { arrived: [], refused: [], failure: "too-large", bytes: 0 };
  let connections = 1;
  const mayConnect = async (host: string): Promise<boolean> => {
    const granted = await fetch.mayConnect(host);
    if (granted) connections++;
    return granted;
  };
  const { config } = parts;
  const { format } = await fetch.repository.refs();
  const found = await lookUp(fetch.url, {
    ...parts,
    format,
    totalMs: Math.min(60_000, config.gitHuntTotalSecs * 1_000),
    idleMs: config.gitHuntSlowSecs * 1_000,
    maxRedirects: config.gitHuntMaxRedirects,
    authorization: fetch.authorization,
    mayConnect,
    signal: fetch.signal,
  });
  if (!found.ok) return { arrived: [], refused: [], failure: found.code, bytes: 0 };
  const ids = fetch.ids.filter((id) => formatOf(id) === format);
  // Nothing is there at all: asking for ids one by one would only spend connections.
  if (found.advertised.size === 0) return { arrived: [], refused: ids, bytes: 0 };
  const requests = config.gitHuntMaxRequests - connections;
  const plan = new FetchPlan(ids, found.advertised, { requests, unadvertised: config.gitHuntMaxUnadvertised });
  return await followPlan(parts, fetch, found, plan, mayConnect);
}

async function followPlan(
  parts: ServerFetchParts,
  fetch: ServerFetch,
  found: LookUp & { readonly ok: true },
  plan: FetchPlan,
  mayConnect: (host: string) => Promise<boolean>,
): Promise<ServerFetchResult> {
  const { config } = parts;
  let bytes = 0;
  let failure: FetchFailureCode | undefined;
  for (let ids = plan.next(); ids && failure === undefined; ids = failure === undefined ? plan.next() : undefined) {
    if (!(await mayConnect(found.url.hostname))) {
      plan.report("failed");
      break;
    }
    const limits: RemoteFetchLimits = {
      totalMs: config.gitHuntTotalSecs * 1_000,
      minBytesPerSecond: config.gitHuntMinBytesPerSecond,
      slowForMs: config.gitHuntSlowSecs * 1_000,
      maxObjects: config.gitHuntMaxObjects,
      gitMemoryBytes: config.gitMemoryBytes,
      maxBytes: Math.max(0, fetch.maxBytes - bytes),
    };
    const startedMs = parts.clock.monotonicMs();
    const { repository, trustRefs, signal } = fetch;
    // Signed anew for each: the one before may be too old.
    const authorization = fetch.authorization?.(found.url.href);
    const asked = { repository, trustRefs, signal, url: found.url, ids, limits, authorization };
    const result = await fetchFromRemote({ ...parts, ...asked });
    bytes += result.bytes;
    parts.fetched(result.bytes, (parts.clock.monotonicMs() - startedMs) / 1_000);
    plan.report(result.outcome);
    if (result.outcome === "failed") failure = result.code === "aborted" ? "cancelled" : result.code;
  }
  const { arrived, refused } = plan;
  const tooFew = failure === "too-large" ? { tooFewBytes: fetch.maxBytes } : {};
  return { arrived, refused, bytes, ...tooFew, ...(failure === undefined ? {} : { failure }) };
}

/** A stranger's pull request is not charged to the owner's share. */
async function countBytes(
  { store, clock }: RunFetchParts,
  name: RepositoryName,
  author: Pubkey | undefined,
  bytes: number,
): Promise<void> {
  await store.transact(async (tx) => {
    const row = await rowForData(tx, name, unixSeconds(clock));
    if (!row) return;
    if (author === undefined) bookOwners(tx, row, bytes);
    else await bookContributors(tx, row, author, bytes);
  });
}

async function authorOf(store: Store, id: string): Promise<Pubkey | undefined> {
  if (!isEventId(id)) return undefined;
  return (await waitingEntry(store, id))?.pubkey ?? (await store.event(id))?.event.pubkey;
}

/**
 * Where a pull request's objects go: a served repository it addresses, else its own under `/prs/`, else one that waits.
 * Never a soft one.
 */
export async function targetOf(store: Store, names: readonly RepositoryName[]): Promise<RepositoryName | undefined> {
  let waiting: RepositoryName | undefined = names.find(({ area }) => area === "prs");
  for (const name of names) {
    if (name.area === "prs") continue;
    const row = await catalogueRow(store, name);
    if (isReleased(row)) return name;
    if (row?.status === "waiting") waiting ??= name;
  }
  return waiting;
}
