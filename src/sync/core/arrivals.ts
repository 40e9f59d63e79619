// Events that arrive (spec "What happens to an event that arrives"): what matches none of our filters is dropped, the
// rest goes to intake like any client's event, as far as budgets have room; when too much is on its way, the relay's
// socket is not read. A relay's time-outs run only while we read it. What intake says: own-server.ts.

import { kinds, type NostrEvent, tagValue } from "../../nostr/event.js";
import type { Offer } from "./budgets.js";
import { type Relay, type SyncState, tally } from "./core-state.js";
import { authorKinds } from "./items.js";
import { allStatesItem, announcementsItem, type Job, layers, repositoryItem, rootItem, stateItem } from "./job.js";
import type { Account, Arrival, RelayKey } from "./messages.js";
import { isFromParticipant } from "./outbox-filters.js";

const addressTag = /^[aAq]$/;
export const idTag = /^[eEq]$/;

/** Whether any layer asks this relay for the event. */
export function isAskedFor(state: SyncState, relay: Relay, event: NostrEvent, job: Job | undefined): boolean {
  const { wanted } = state;
  if (event.kind === kinds.announcement && relay.items.has(announcementsItem)) return true;
  if (event.kind === kinds.state) {
    if (relay.items.has(allStatesItem)) return true;
    for (const repo of wanted.withIdentifier(tagValue(event, "d") ?? "") ?? []) {
      if (relay.items.has(stateItem(repo.ix))) return true;
    }
  }
  for (const [name, value] of event.tags) {
    if (name === undefined || value === undefined) continue;
    if (addressTag.test(name)) {
      const repo = wanted.repos.get(value);
      if (repo && relay.items.has(repositoryItem(repo.ix))) return true;
    }
    if (idTag.test(name)) {
      const root = wanted.rootNumber(value);
      if (root !== undefined && relay.items.has(rootItem(root))) return true;
      if (job?.related?.ids.includes(value as NostrEvent["id"])) return true;
    }
  }
  if (event.kind === kinds.relayList && job?.lists?.includes(event.pubkey)) return true;
  if (authorKinds.includes(event.kind) && job?.related?.authors.includes(event.pubkey)) return true;
  return isFromParticipant(state, relay, event, coordinatesOf(state, event));
}

/** Every repository that an event is about. */
export function* coordinatesOf({ wanted }: SyncState, event: Pick<NostrEvent, "tags">): Iterable<string> {
  for (const [name, value] of event.tags) {
    if (name === undefined || value === undefined) continue;
    if (addressTag.test(name) && wanted.repos.has(value)) yield value;
    const root = idTag.test(name) ? wanted.rootNumber(value) : undefined;
    if (root !== undefined) for (const { coordinate } of wanted.reposOfRoot(root)) yield coordinate;
  }
}

/** Whose budget an event counts against: a flood on one repository must not keep it from another that has room. */
function accountOf(state: SyncState, event: NostrEvent): Account | undefined {
  if (event.kind === kinds.state || event.kind === kinds.announcement)
    return { author: event.pubkey, identifier: tagValue(event, "d") ?? "" };
  let account: Account | undefined;
  for (const coordinate of coordinatesOf(state, event)) {
    account = { coordinate };
    if (!state.budgets.isOver(account)) break;
  }
  return account;
}

export function offer(state: SyncState, key: RelayKey, arrival: Arrival): void {
  const { event } = arrival;
  const relay = state.relays.get(key);
  const account = accountOf(state, event);
  if (account && state.budgets.isOver(account)) {
    drop(state, relay, "over-budget");
    return;
  }
  if (relay) {
    const room = roomToday(state, relay);
    if (room <= 0) {
      drop(state, relay, "over-budget");
      return;
    }
    // Never one too many: those on their way may all be new.
    const mustWait = relay.offersInFlight >= room;
    if (mustWait) relay.held.push(arrival);
    else relay.offersInFlight += 1;
    const isFull = mustWait || relay.offersInFlight >= state.config.maxOffersInFlight;
    if (isFull && !relay.readingPaused && relay.status === "connected") {
      relay.readingPaused = true;
      listen(state, relay, state.now.monotonicMs);
      state.out.push({ type: "pauseReading", relay: key, link: relay.link });
    }
    if (mustWait) return;
  }
  const offered: Offer = { type: "offerToIntake", relay: key, ...arrival, account };
  if (!account || state.budgets.take(account, offered)) state.out.push(offered);
}

/** How many new events the relay may bring before its day is over. */
export function roomToday({ config, now }: SyncState, relay: Relay): number {
  const nowMs = now.monotonicMs;
  if (nowMs - relay.dayStartMs >= config.dayMs) {
    relay.dayStartMs = nowMs;
    relay.newToday = 0;
  }
  return config.syncMaxEventsPerRelayPerDay - relay.newToday;
}

/** An event that one of our subscriptions asked for. */
export function onArrival(
  state: SyncState,
  relay: Relay,
  subscription: string,
  job: Job | undefined,
  event: NostrEvent,
): void {
  if (state.remembered.has(event.id, state.now)) return;
  const layer = job ? job.layer : relay.liveSubs.get(subscription)?.chunk.layer;
  const isFromOutbox = layer === layers.outbox && !job?.lists;
  const layerFour = job?.related !== undefined || layer === layers.outbox;
  const isCurrent = !job && isOfNow(state, relay, subscription, event);
  offer(state, relay.key, {
    source: job?.source ?? "live",
    layerFour,
    event,
    ...(isCurrent && { isCurrent }),
    ...(isFromOutbox && { isFromOutbox }),
  });
}

/** Created while the subscription was open: neither the tail of history, nor what somebody sent there years later. */
function isOfNow({ now }: SyncState, relay: Relay, subscription: string, event: NostrEvent): boolean {
  const openedMs = relay.liveSubs.get(subscription)?.chunk.openedMs;
  if (openedMs === undefined) return false;
  return event.created_at >= Math.floor((now.wallMs - (now.monotonicMs - openedMs)) / 1000);
}

export function drop(state: SyncState, relay: Relay | undefined, label: string): void {
  tally(state, "dropped_events", relay, label);
}

export function oneOfferLess(state: SyncState, relay: Relay | undefined): void {
  if (!relay) return;
  relay.offersInFlight = Math.max(0, relay.offersInFlight - 1);
  for (const arrival of relay.held.splice(0)) offer(state, relay.key, arrival);
  // The last verdict of a sync lets its summary be written.
  if (relay.offersInFlight === 0) state.touched.add(relay);
  if (!relay.readingPaused || relay.offersInFlight > state.config.maxOffersInFlight / 2) return;
  relay.readingPaused = false;
  listen(state, relay, state.now.monotonicMs);
  if (relay.status === "connected") state.out.push({ type: "resumeReading", relay: relay.key, link: relay.link });
}

/** Notes whether the relay is read. To be called when that has changed. */
export function listen(state: SyncState, relay: Relay, nowMs: number): void {
  const isDeaf = relay.status === "connected" && (relay.readingPaused || state.readingHeld);
  if (isDeaf) relay.deafSinceMs ??= nowMs;
  else if (relay.deafSinceMs !== undefined) {
    forgive(relay, relay.deafSinceMs, nowMs);
    relay.deafSinceMs = undefined;
  }
}

/** Nobody is read, or everybody again. */
export function holdReading(state: SyncState, held: boolean, nowMs: number): void {
  state.readingHeld = held;
  for (const relay of state.relays.values()) {
    listen(state, relay, nowMs);
    state.touched.add(relay);
  }
}

/** A wake-up that comes far too late: we listened to nobody since the step before. */
export function forgiveLateness(state: SyncState, wakeMs: number, nowMs: number): void {
  if (!state.lastStep || nowMs - wakeMs <= state.config.lateWakeMs) return;
  for (const relay of state.relays.values()) forgive(relay, state.lastStep.monotonicMs, nowMs);
}

/** The time from `sinceMs` until now does not count for what the relay owes us. */
function forgive(relay: Relay, sinceMs: number, nowMs: number): void {
  const later = (atMs: number): number => atMs + Math.max(0, nowMs - Math.max(sinceMs, atMs));
  for (const { queries } of relay.jobs) {
    for (const query of queries) {
      query.sentMs = later(query.sentMs);
      query.heardMs = later(query.heardMs);
    }
  }
  for (const chunk of relay.chunks) {
    chunk.openedMs = later(chunk.openedMs);
    if (chunk.awaitsAuth) chunk.retryAtMs += nowMs - sinceMs;
  }
}
