// `sync verify`: one repository beside every copy its announcement lists: events at relays, refs at git servers. Looks
// and changes nothing. What is dialled was named by strangers: it goes through the outbound guard, is bounded in time
// and bytes, and what remote servers answer is for the operator only (threats.md rows 4 and 31).

import { randomBytes } from "node:crypto";
import { repositoryAuthorization } from "../access/signed-request.js";
import { unixSeconds } from "../base/clock.js";
import { maintainersOf } from "../catalogue/maintainers.js";
import { catalogueRow, isReleased, type RepositoryName, repositoryAddress } from "../catalogue/repositories.js";
import { diskAddress } from "../git/address.js";
import type { RefTable } from "../git/ref-tables.js";
import { selectUrls } from "../hunt/core/fetch-plan.js";
import { authorizationFor, lookUp, PlainHosts } from "../hunt/look-up.js";
import { guardWith, systemResolver } from "../net/guard.js";
import type { RelayDialer } from "../net/relay-dialer.js";
import { type CloneUrl, type ServiceName, serviceName } from "../net/url.js";
import { type EventId, kinds } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { announcementOf } from "../nostr/nip34.js";
import { OneOffFailure } from "../sync/conversation.js";
import { type ListedRelay, relaysOf } from "../sync/core/wanted.js";
import { isRememberedBySync } from "../sync/kept-rows.js";
import { compareOnce } from "../sync/one-off.js";
import { ownSide, rootsOf } from "../sync/own-server.js";
import type { OwnSide } from "../sync/reconciliation.js";
import { type AdminParts, done, type OperationContext, type Outcome, refusal } from "./context.js";
import { repositoryText } from "./naming.js";
import { dialerOf } from "./relays.js";
import type { ComparedRef, GitCopy, RelayCopy, Verified } from "./verified.js";

const maxCopies = 20;
const sideBySide = 4;
const relayMaxMs = 120_000;
const valuesAtOnce = 100;
/** Threads that are compared, the newest first: 200 comparisons at most. */
const maxRoots = 5_000;

export async function verifyRepository(
  parts: AdminParts,
  name: RepositoryName,
  context: OperationContext,
): Promise<Outcome<Verified>> {
  const { store, clock, config } = parts;
  const row = await catalogueRow(store, name);
  const stored = await store.latest({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier });
  const announcement = stored && announcementOf(stored.event);
  if (!row || !isReleased(row) || !announcement) {
    return refusal("unknown", `no repository ${repositoryText(name)} is served here`);
  }
  // Git servers too are asked by names that only members may know.
  const dialer = await dialerOf(parts, parts.reach());
  if (!dialer.ok) return dialer;
  const services: ServiceName[] = [serviceName(config().domain) ?? []].flat();
  const listed = relaysOf(announcement, services, maxCopies);
  const servers = gitServersOf(announcement.clone, services, maxCopies);
  const filters = await filtersOf(parts, name);
  const table = await (await parts.repositories()).open(diskAddress(name)).refs();

  let compared = 0;
  const counted = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    context.progress(++compared, listed.length + servers.length, "comparing");
    return result;
  };
  const relays = await inTurn(listed, (relay) => {
    return counted(verifyRelay(parts, relay, { filters, dialer: dialer.result, signal: context.signal }));
  });
  const gitServers = await inTurn(servers, (url) => counted(verifyGitServer(parts, url, table, context.signal)));
  const verified = { repository: repositoryText(name), at: unixSeconds(clock), relays, gitServers };
  parts.running?.verified(name, verified);
  return done(verified);
}

/** The core's layers, for this repository alone: its announcement, its states, what tags it, what tags its roots. */
async function filtersOf({ store }: AdminParts, name: RepositoryName): Promise<Filter[]> {
  const coordinate = repositoryAddress(name);
  const authors = [...(await maintainersOf(store, name))];
  const ofName = new Map([["d", [name.identifier]]]);
  const tagged = (tags: readonly string[], values: readonly string[]): Filter[] =>
    tags.map((tag) => ({ tags: new Map([[tag, values]]) }));
  const roots: EventId[] = [];
  for await (const { id } of rootsOf(store, coordinate)) if (roots.push(id) === maxRoots) break;
  const ofRoots: Filter[] = [];
  for (let from = 0; from < roots.length; from += valuesAtOnce) {
    ofRoots.push(...tagged(["e", "E", "q"], roots.slice(from, from + valuesAtOnce)));
  }
  return [
    { kinds: [kinds.announcement], authors: [name.owner], tags: ofName },
    { kinds: [kinds.state], authors, tags: ofName },
    ...tagged(["a", "A", "q"], [coordinate]),
    ...ofRoots,
  ];
}

async function verifyRelay(
  parts: AdminParts,
  { key, url }: ListedRelay,
  asking: { readonly filters: readonly Filter[]; readonly dialer: RelayDialer; readonly signal: AbortSignal },
): Promise<RelayCopy> {
  const nothing = { relay: url, missingHere: 0, missingThere: 0, waitingHere: 0, method: null, reason: null };
  if (parts.rules.ignoredRelays.has(key)) return { ...nothing, standing: "ignored" };
  try {
    const found = await compareOnce({ url, ...asking, own: ownSideOf(parts), maxMs: relayMaxMs });
    const [missingHere, missingThere] = [found.missing.size, found.peerMissing.size];
    return {
      ...nothing,
      standing: missingHere + missingThere === 0 ? "same" : "differs",
      missingHere,
      missingThere,
      waitingHere: found.waiting.size,
      method: found.method,
    };
  } catch (error) {
    if (!(error instanceof OneOffFailure)) throw error;
    return { ...nothing, standing: "not compared", reason: error.message };
  }
}

/** What sync was refused, or has superseded, is not missing. */
function ownSideOf({ store, clock, config }: AdminParts): OwnSide {
  const own = ownSide(store, clock, () => config().negentropyMaxRecords);
  return {
    ...own,
    async sort(ids) {
      const { missing, waiting } = await own.sort(ids);
      const unknown: EventId[] = [];
      for (const id of missing) if (!(await isRememberedBySync(store, id, clock.nowMs()))) unknown.push(id);
      return { missing: unknown, waiting };
    },
  };
}

/** All of them, in order, a few side by side. */
async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as T);
  };
  await Promise.all(Array.from({ length: sideBySide }, worker));
  return results;
}

// A repository's branches and tags beside those of one other git server. Asked by our own requests, never by git:
// each hop through the outbound guard, a minute and 16 MiB at most (hunt/look-up.ts).

const gitServerMaxMs = 60_000;
const idleMs = 30_000;
const maxRedirects = 3;
const maxRequests = 12;
const maxTold = 20;

/** What an announcement lists, in order, without ourselves; http and https only. */
const gitServersOf = (clone: readonly string[], ours: readonly ServiceName[], max: number): CloneUrl[] =>
  selectUrls([{ isOwners: true, clone }], ours, {
    gitHuntMaxUrlsPerAnnouncement: max,
    gitHuntMaxUrlsPerHost: max,
    gitHuntMaxUrlsPerRepository: max,
  }).map(({ url }) => url);

async function verifyGitServer(
  { clock, reach, config, serverSecret }: AdminParts,
  url: CloneUrl,
  { refs: here, format }: RefTable,
  signal: AbortSignal,
): Promise<GitCopy> {
  let requests = 1;
  const secret = config().privateMode ? serverSecret() : undefined;
  const found = await lookUp(url, {
    clock,
    format,
    guard: guardWith({ resolve: systemResolver(clock), reach: reach() }),
    plainHosts: new PlainHosts(clock),
    totalMs: gitServerMaxMs,
    idleMs,
    maxRedirects,
    mayConnect: async () => ++requests <= maxRequests,
    authorization:
      secret && authorizationFor([url], (root) => repositoryAuthorization(secret, root, clock, randomBytes)),
    signal,
  });
  if (!found.ok) {
    return { url, standing: "not compared", refs: 0, differing: 0, differences: [], reason: found.code };
  }
  const there = new Map([...found.refs].filter(([ref]) => isStates(ref)));
  const differences = refsThatDiffer(new Map([...here].map(([ref, { oid }]) => [ref, oid])), there);
  return {
    url,
    standing: differences.length === 0 ? "same" : "differs",
    refs: there.size,
    differing: differences.length,
    differences: differences.slice(0, maxTold),
    reason: null,
  };
}

/** Pull requests' and other refs are no state's to decide: servers need not agree on them. */
const isStates = (ref: string): boolean => ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");

export function refsThatDiffer(here: ReadonlyMap<string, string>, there: ReadonlyMap<string, string>): ComparedRef[] {
  const names = [...new Set([...here.keys(), ...there.keys()])].filter(isStates).sort();
  return names.flatMap((ref) => {
    const compared = { ref, here: here.get(ref) ?? null, there: there.get(ref) ?? null };
    return compared.here === compared.there ? [] : [compared];
  });
}
