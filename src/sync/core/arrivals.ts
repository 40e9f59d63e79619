// Events that arrive, and what intake says of them (spec "What happens to an event that arrives"). What matches none
// of our filters is dropped; the rest goes to intake like any client's event; verdicts move budgets, memory, counts.

import type { NostrEvent } from "../../nostr/event.js";
import { tagValue } from "../../nostr/event.js";
import { gitDataKinds, kinds } from "../../nostr/kinds.js";
import type { Account, Offer } from "./budgets.js";
import { disconnect } from "./connection.js";
import { authorKinds } from "./filters.js";
import { allStatesItem, announcementsItem, repositoryItem, rootItem, stateItem } from "./items.js";
import type { Job } from "./job.js";
import { listen } from "./listening.js";
import { reconsider } from "./live-set.js";
import type { Arrival, EventSource, Input, RelayKey } from "./messages.js";
import { isOurs, isTrouble } from "./refusals.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { log, tally } from "./telling.js";

const addressTag = /^[aAq]$/;
const idTag = /^[eEq]$/;

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
  return authorKinds.includes(event.kind) && (job?.related?.authors.includes(event.pubkey) ?? false);
}

/** Whose budget an event counts against. */
function accountOf({ wanted }: SyncState, event: NostrEvent): Account | undefined {
  if (event.kind === kinds.state || event.kind === kinds.announcement)
    return { author: event.pubkey, identifier: tagValue(event, "d") ?? "" };
  for (const [name, value] of event.tags) {
    if (name === undefined || value === undefined) continue;
    if (addressTag.test(name) && wanted.repos.has(value)) return { coordinate: value };
    const root = idTag.test(name) ? wanted.rootNumber(value) : undefined;
    const repo = root === undefined ? undefined : wanted.reposOfRoot(root)[0];
    if (repo) return { coordinate: repo.coordinate };
  }
  return undefined;
}

export function offer(state: SyncState, key: RelayKey, arrival: Arrival, step: Step): void {
  const { event } = arrival;
  const relay = state.relays.get(key);
  const account = accountOf(state, event);
  if (account && state.budgets.isOver(account)) {
    drop(relay, "over-budget", step);
    return;
  }
  if (relay) {
    const room = roomToday(state, relay, step);
    if (room <= 0) {
      drop(relay, "over-budget", step);
      return;
    }
    // Never one too many: those on their way may all be new.
    const mustWait = relay.offersInFlight >= room;
    if (mustWait) relay.held.push(arrival);
    else relay.offersInFlight += 1;
    const isFull = mustWait || relay.offersInFlight >= state.config.maxOffersInFlight;
    if (isFull && !relay.readingPaused && relay.status === "connected") {
      relay.readingPaused = true;
      listen(state, relay, step.now.monotonicMs);
      step.out.push({ type: "pauseReading", relay: key, link: relay.link });
    }
    if (mustWait) return;
  }
  const offered: Offer = { type: "offerToIntake", relay: key, ...arrival, account };
  if (!account || state.budgets.take(account, offered)) step.out.push(offered);
}

/** How many new events the relay may bring before its day is over. */
function roomToday({ config }: SyncState, relay: Relay, step: Step): number {
  const nowMs = step.now.monotonicMs;
  if (nowMs - relay.dayStartMs >= config.dayMs) {
    relay.dayStartMs = nowMs;
    relay.newToday = 0;
  }
  return config.maxNewPerRelayPerDay - relay.newToday;
}

/** An event that one of our subscriptions asked for. */
export function onArrival(
  state: SyncState,
  relay: Relay,
  subscription: string,
  job: Job | undefined,
  event: NostrEvent,
  step: Step,
): void {
  if (state.remembered.has(event.id, step.now)) return;
  const layerFour = job?.related !== undefined;
  const isCurrent = !job && isOfNow(relay, subscription, event, step);
  offer(state, relay.key, { source: job?.source ?? "live", layerFour, event, ...(isCurrent && { isCurrent }) }, step);
}

/** Created while the subscription was open: neither the tail of history, nor what somebody sent there years later. */
function isOfNow(relay: Relay, subscription: string, event: NostrEvent, { now }: Step): boolean {
  const openedMs = relay.liveSubs.get(subscription)?.chunk.openedMs;
  if (openedMs === undefined) return false;
  return event.created_at >= Math.floor((now.wallMs - (now.monotonicMs - openedMs)) / 1000);
}

export function drop(relay: Relay | undefined, label: string, step: Step): void {
  tally(step, "dropped_events", relay, label);
}

function oneOfferLess(state: SyncState, relay: Relay | undefined, step: Step): void {
  if (!relay) return;
  relay.offersInFlight = Math.max(0, relay.offersInFlight - 1);
  for (const arrival of relay.held.splice(0)) offer(state, relay.key, arrival, step);
  // The last verdict of a sync lets its summary be written.
  if (relay.offersInFlight === 0) state.touched.add(relay);
  if (!relay.readingPaused || relay.offersInFlight > state.config.maxOffersInFlight / 2) return;
  relay.readingPaused = false;
  listen(state, relay, step.now.monotonicMs);
  if (relay.status === "connected") step.out.push({ type: "resumeReading", relay: relay.key, link: relay.link });
}

/** What waited for this verdict goes to intake, or is for another day. */
function settleBudget(state: SyncState, account: Account, isNew: boolean, step: Step): void {
  const { budgets, relays } = state;
  const wasOver = budgets.isOver(account);
  const held = budgets.settle(account, isNew);
  if (!budgets.isOver(account)) {
    step.out.push(...held);
    return;
  }
  if (!wasOver)
    log(step, "warn", "coordinate" in account ? "repository-budget-hit" : "author-budget-hit", undefined, account);
  for (const { relay: key } of held) {
    drop(relays.get(key), "over-budget", step);
    oneOfferLess(state, relays.get(key), step);
  }
}

/** Layer 1 and the state layer ask for what strangers wrote: that we refuse most of it is not the relay's fault. */
const isExpectedRefusal = (event: NostrEvent): boolean =>
  event.kind === kinds.announcement || event.kind === kinds.state;

export function onVerdict(state: SyncState, input: Extract<Input, { type: "verdict" }>, step: Step): void {
  const { event, outcome, source } = input;
  const { config } = state;
  const relay = state.relays.get(input.relay);
  const isNew = outcome.type === "stored" || outcome.type === "held";
  if (isNew && relay) countNew(state, relay, step);
  oneOfferLess(state, relay, step);
  if (input.account) settleBudget(state, input.account, isNew, step);
  state.remembered.note(event, outcome, input.relay, step.now, step.out);
  if ((outcome.type === "held" || outcome.type === "waiting") && gitDataKinds.has(event.kind)) {
    step.out.push({ type: "servedThere", relay: input.relay, id: event.id });
  }
  if (isNew) {
    tally(step, "events", undefined, source);
    if (source === "live") {
      log(step, "debug", "live-event", relay, { id: event.id, kind: event.kind });
      if (outcome.type === "stored" && input.isCurrent) {
        step.out.push({ type: "observeLag", seconds: Math.max(0, step.now.wallMs / 1000 - event.created_at) });
      }
    }
    if (relay && !input.layerFour) noteHistory(relay, source, step);
    noteNew(state, relay, event, step);
    if (outcome.type === "stored") judgeAgain(state, event, undefined, step);
  }
  if (!relay) return;
  if (isTrouble(outcome)) resyncLater(state, relay, step);
  if (isOurs(outcome)) return;
  relay.judged += 1;
  if (outcome.type === "refused" && !isExpectedRefusal(event)) relay.refused += 1;
  if (relay.judged < config.refusedWindow) return;
  const share = relay.refused / relay.judged;
  relay.judged = 0;
  relay.refused = 0;
  if (share > config.refusedShare) pause(state, relay, "mostly-refused", config.refusedPauseMs, step);
}

/** What our own trouble lost is fetched with one full sync, when nothing was lost for a while; longer each time. */
function resyncLater({ config, touched }: SyncState, relay: Relay, step: Step): void {
  const waitMs = config.resyncAfterTroubleMs * 2 ** relay.resyncs;
  relay.resyncMs = step.now.monotonicMs + Math.min(waitMs, config.maxResyncWaitMs);
  touched.add(relay);
}

/** For the summaries; what live should have brought is also counted as a gap. */
function noteHistory(relay: Relay, source: EventSource, step: Step): void {
  if (source !== "startup" && source !== "reconnect" && source !== "daily") return;
  relay.newSince[source] += 1;
  if (source !== "startup") tally(step, "gap_events", relay);
}

function noteNew(state: SyncState, relay: Relay | undefined, event: NostrEvent, step: Step): void {
  for (const [name, value] of event.tags) {
    const root =
      name !== undefined && value !== undefined && idTag.test(name) ? state.wanted.rootNumber(value) : undefined;
    if (root === undefined) continue;
    state.wanted.noteActivity(root, Math.min(event.created_at, step.now.wallMs / 1000));
    if (relay) reconsider(state, relay, rootItem(root));
  }
}

function countNew(state: SyncState, relay: Relay, step: Step): void {
  const room = roomToday(state, relay, step) - 1;
  relay.newToday += 1;
  if (room > 0) return;
  pause(state, relay, "relay-budget-hit", relay.dayStartMs + state.config.dayMs - step.now.monotonicMs, step);
}

function pause(state: SyncState, relay: Relay, code: string, forMs: number, step: Step): void {
  state.health.of(relay.key).pausedUntilMs = step.now.monotonicMs + forMs;
  log(step, "warn", code, relay, { forMs: Math.round(forMs) });
  disconnect(state, relay, step);
  state.touched.add(relay);
}

/** Something is here that may make rejected events valid: hot ones are offered at once, cold ones fetched. */
export function judgeAgain(state: SyncState, event: NostrEvent, coordinate: string | undefined, step: Step): void {
  const offered = new Set<string>();
  for (const hot of state.remembered.hotFor(event, coordinate)) {
    offered.add(hot.event.id);
    if (state.remembered.cold.delete(hot.event.id)) step.out.push({ type: "forget", id: hot.event.id });
    offer(state, hot.relay, { source: "direct", layerFour: false, event: hot.event }, step);
  }
  if (event.kind !== kinds.announcement) return;
  for (const { id, relay: key } of state.remembered.coldFor(event, step.out)) {
    const relay = state.relays.get(key);
    if (!relay || offered.has(id) || relay.direct.length >= state.config.maxDirectIds) continue;
    relay.direct.push(id);
    state.touched.add(relay);
  }
}
