// Looks for participants' relay lists (grasp.md, GRASP-03): on their repositories' relays and the index relays, and for who
// has none on the fallback relays. Also single events at their signers' own relays. A relay that is needed only for that
// is followed for a few minutes, under the same caps and with the same manners as every other.

import { type EventId, kinds, type NostrEvent, type Pubkey } from "../../nostr/event.js";
import { passesBy, type Relay, type SyncState } from "./core-state.js";
import { historyCapacity } from "./items.js";
import { type Job, Query } from "./job.js";
import type { Outcome } from "./messages.js";
import { askDirectly } from "./query.js";
import type { RelayLists } from "./relay-lists.js";
import { endPassing, relayOutside } from "./relay-table.js";
import { listedRelay, type Repo } from "./wanted.js";

/** A relay that is followed only to be asked something is given up after this. */
const passByMs = 10 * 60 * 1000;

/** A repository's outboxes are looked at together with what else has changed by then (outbox.ts). */
export function changeLater(state: SyncState, repo: Repo): void {
  const { outbox, config, now } = state;
  outbox.changed.add(repo);
  outbox.dueMs = Math.min(outbox.dueMs, now.monotonicMs + config.syncBatchWindowMs);
}

/** Asks for the lists of those of whom nothing is known, or nothing new. */
export function lookForLists(state: SyncState, authors: Iterable<Pubkey>): void {
  const nowMs = state.now.monotonicMs;
  for (const author of authors) {
    // The others have their turn when these have ended.
    if (state.lists.asked >= state.config.maxListLookUps) return;
    if (state.lists.isDue(author, nowMs)) ask(state, author, placesFor(state, author), false);
  }
}

function placesFor(state: SyncState, author: Pubkey): Relay[] {
  const places = new Set<Relay>(passersBy(state, state.config.indexRelays));
  const most = places.size + state.config.maxListPlaces;
  for (const repo of state.participants.reposOf(author)) {
    for (const ix of repo.placed) {
      const relay = state.byIx[ix];
      if (relay && places.size < most && !isAway(state, relay)) places.add(relay);
    }
  }
  return [...places];
}

/** It does not answer at the moment, and nobody knows when it will. */
const isAway = ({ ignored, health }: SyncState, { key, status }: Relay): boolean =>
  ignored.has(key) || (status === "disconnected" && health.of(key).failures > 0);

/** The operator named these: no cap stands against them. */
function passersBy(state: SyncState, urls: readonly string[]): Relay[] {
  return urls.flatMap((url) => {
    const listed = listedRelay(url);
    if (!listed || state.config.ownServices.includes(listed.key) || state.ignored.has(listed.key)) return [];
    const relay = relayOutside(state, listed);
    return isAway(state, relay) ? [] : [relay];
  });
}

function ask(state: SyncState, author: Pubkey, places: readonly Relay[], isAtFallbacks: boolean): void {
  state.lists.begin(
    author,
    places.map(({ ix }) => ix),
    isAtFallbacks,
    state.now.monotonicMs,
  );
  for (const relay of places) {
    relay.listsWanted.add(author);
    passBy(state, relay);
  }
  if (places.length === 0) endLookUp(state, author);
}

/** Followed until it was asked, whoever lists it. */
export function passBy(state: SyncState, relay: Relay): void {
  relay.passesByUntilMs = state.now.monotonicMs + passByMs;
  state.touched.add(relay);
}

/** Nobody is waited for any more: who has no list is looked for elsewhere, or has none. */
function endLookUp(state: SyncState, author: Pubkey): void {
  if (state.lists.end(author, state.now.monotonicMs) === "elsewhere") {
    ask(state, author, passersBy(state, state.config.fallbackRelays), true);
    return;
  }
  for (const repo of state.participants.reposOf(author)) changeLater(state, repo);
}

/** The next request for lists at this relay. */
export function takeLists(state: SyncState, relay: Relay): Pick<Job, "lists" | "queries"> {
  const authors = [...relay.listsWanted].slice(0, historyCapacity(state.config, relay).values);
  for (const author of authors) relay.listsWanted.delete(author);
  return { lists: authors, queries: [new Query(undefined, [], [{ values: [], kinds: [kinds.relayList], authors }])] };
}

export function onListsAnswered(
  state: SyncState,
  relay: Relay,
  authors: readonly Pubkey[],
  hasAnswered: boolean,
): void {
  for (const author of authors) {
    if (state.lists.heard(author, relay.ix, hasAnswered)) endLookUp(state, author);
  }
}

/** The link is gone before the answer. */
export function putBackLists(relay: Relay, authors: readonly Pubkey[]): void {
  for (const author of authors) relay.listsWanted.add(author);
}

/** Once a minute: whoever was asked for long enough is not waited for; relays that were only asked something go. */
export function tidyLookUps(state: SyncState): void {
  const nowMs = state.now.monotonicMs;
  for (const author of [...state.lists.overdue(nowMs)]) endLookUp(state, author);
  for (const relay of state.relays.values()) {
    if (!passesBy(relay)) continue;
    const isBusy = relay.listsWanted.size + relay.direct.size + relay.owed.length + relay.jobs.length > 0;
    if (isBusy && relay.passesByUntilMs > nowMs) continue;
    endPassing(relay);
  }
}

/** Its signature was checked, and nothing but policy keeps it out: what it says is its author's word. */
const isAuthentic = (outcome: Outcome): boolean =>
  outcome.type === "refused" ? outcome.code === "unrelated" : outcome.type !== "superseded";

/** What intake said of a list that some relay sent. */
export function onListJudged(state: SyncState, event: NostrEvent, outcome: Outcome): void {
  if (isAuthentic(outcome)) onList(state, event);
}

/** What is needed of a list. */
type ListEvent = Parameters<RelayLists["learn"]>[0];

/** A list, stored here or checked on its way in. `isOld`: it was here before, and a newer one may be elsewhere. */
export function onList(state: SyncState, event: ListEvent, isOld = false): void {
  const { pubkey: author } = event;
  const { participants, lists, config, outbox } = state;
  if (!participants.takesPart(author) && !outbox.awaited.has(author)) return;
  const untilMs = isOld ? Number.NEGATIVE_INFINITY : state.now.monotonicMs + config.listFoundMs;
  if (lists.learn(event, untilMs)) for (const repo of participants.reposOf(author)) changeLater(state, repo);
  const ids = outbox.awaited.get(author);
  if (!ids || isOld) return;
  outbox.awaited.delete(author);
  askSigner(state, author, [...ids]);
}

/** Somebody here needs these events, and their signer may have sent them only to relays of his own. */
export function lookAtSigner(state: SyncState, signer: Pubkey, ids: readonly EventId[]): void {
  const { lists, outbox, config } = state;
  if (!config.syncPlusEnabled) return;
  if (lists.relaysOf(signer)?.isFound) {
    askSigner(state, signer, ids);
    return;
  }
  const awaited = outbox.awaited.get(signer) ?? new Set<EventId>();
  if (!outbox.awaited.has(signer) && outbox.awaited.size >= config.maxAwaitedSigners) return;
  for (const id of ids) if (awaited.size < config.syncFetchIds) awaited.add(id);
  outbox.awaited.set(signer, awaited);
  lookForLists(state, [signer]);
}

function askSigner(state: SyncState, signer: Pubkey, ids: readonly EventId[]): void {
  for (const listed of state.lists.relaysOf(signer)?.relays ?? []) {
    const isKnown = state.relays.has(listed.key);
    if (state.ignored.has(listed.key) || (!isKnown && state.outbox.unlisted.size >= state.config.maxOutboxRelays))
      continue;
    const relay = relayOutside(state, listed);
    askDirectly(state, relay, ids);
    passBy(state, relay);
  }
}
