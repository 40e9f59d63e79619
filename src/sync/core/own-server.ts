// What our own server tells the core: the feed, purgatory, lists, events somebody here needs (spec "Following our own
// relay"), what intake says of an event that was offered, and the operator's commands about relays. What was refused or
// not here before, and is worth a look now, is judged again: at once where the event is at hand, else fetched by id
// from its relay, never more at once than the relay has room for, and not all relays together.

import {
  type Address,
  addressText,
  type EventId,
  gitDataKinds,
  kinds,
  type NostrEvent,
  parseAddress,
  tagValue,
} from "../../nostr/event.js";
import { idTag, offer, oneOfferLess, roomToday } from "./arrivals.js";
import { secondMs } from "./config.js";
import { disconnect, resyncLater } from "./connection.js";
import { log, type Relay, type SyncState, tally } from "./core-state.js";
import { makeFresh } from "./items.js";
import { announcementsItem, type Owed, rootItem } from "./job.js";
import { lookAtSigner, onListJudged } from "./list-look-ups.js";
import { reconsider } from "./live-set.js";
import type { Account, EventSource, Input, RelayKey } from "./messages.js";
import { lookUpLater } from "./outbox.js";
import { participantKinds } from "./outbox-filters.js";
import { askDirectly } from "./query.js";
import { byLists, type ColdId, isOurs, isTrouble } from "./remembered.js";
import { followBootstrap } from "./targets.js";
import type { Level } from "./wanted.js";

type OwnInput = Extract<
  Input,
  { type: "accepted" | "waiting" | "unwaiting" | "removed" | "replayEnded" | "listsChanged" | "wantIds" }
>;

const coordinateOf = (event: NostrEvent): string =>
  addressText({ kind: kinds.announcement, pubkey: event.pubkey, identifier: tagValue(event, "d") ?? "" });

export function onOwnServer(state: SyncState, input: OwnInput): void {
  const { wanted } = state;
  switch (input.type) {
    case "accepted":
      if (input.event.kind !== kinds.announcement) {
        wanted.addRoot(input.event);
        noteAccepted(state, input.event);
        judgeAgain(state, input.event, undefined);
      } else if (input.hosted === false) wanted.removeRepo(coordinateOf(input.event));
      else announce(state, input.event, "full");
      break;
    case "waiting":
      announce(state, input.event, "state-only");
      break;
    case "unwaiting":
      if (wanted.repos.get(input.coordinate)?.level === "state-only") wanted.removeRepo(input.coordinate);
      noteGone(state, input.coordinate);
      break;
    case "removed":
      removed(state, input);
      break;
    case "replayEnded":
      wanted.endReplay();
      break;
    case "listsChanged":
      listsChanged(state, input.archive ?? false);
      break;
    case "wantIds":
      wantIds(state, input.ids, input.coordinate);
      if (input.signer) lookAtSigner(state, input.signer, input.ids);
      break;
  }
}

/** Whoever wrote it takes part in what it is about; looked at together with what else comes soon (outbox.ts). */
function noteAccepted(
  { wanted, config, outbox, now }: SyncState,
  { pubkey, kind, created_at, tags, id }: NostrEvent,
): void {
  if (!wanted.replayEnded || !config.syncPlusEnabled || wanted.repos.size === 0) return;
  outbox.accepted.push({ pubkey, kind, created_at, tags, id });
  const waitMs = outbox.accepted.length < config.maxAcceptedNoted ? config.syncBatchWindowMs : 0;
  outbox.dueMs = Math.min(outbox.dueMs, now.monotonicMs + waitMs);
}

function announce(state: SyncState, event: NostrEvent, level: Level): void {
  const { wanted } = state;
  const isNew = wanted.announce(event, level) !== undefined;
  const coordinate = coordinateOf(event);
  // Its roots may have been stored before anybody wanted it.
  if (isNew && wanted.replayEnded) state.out.push({ type: "lookUpRoots", coordinate });
  // Other repositories of that identifier may have other maintainers by it.
  for (const repo of wanted.withIdentifier(tagValue(event, "d") ?? "") ?? []) lookUpLater(state, repo);
  judgeAgain(state, event, coordinate);
}

function removed(state: SyncState, input: Extract<OwnInput, { type: "removed" }>): void {
  const { wanted } = state;
  if (input.address === undefined) {
    wanted.removeRoot(input.id);
    return;
  }
  // A newer version takes its place and says itself what is wanted.
  if (input.cause === "replaced") return;
  const isAnnouncement = parseAddress(input.address)?.kind === kinds.announcement;
  if (isAnnouncement && wanted.repos.get(input.address)?.announcementId !== input.id) return;
  if (isAnnouncement) wanted.removeRepo(input.address);
  noteGone(state, input.address);
}

function noteGone(state: SyncState, text: string): void {
  const address = parseAddress(text);
  if (address) newestGone(state, address);
}

/** What waited for this verdict goes to intake, or is for another day, or for another repository it is about. */
function settleBudget(state: SyncState, account: Account, isNew: boolean): void {
  const { budgets, relays } = state;
  const wasOver = budgets.isOver(account);
  const held = budgets.settle(account, isNew);
  if (!budgets.isOver(account)) {
    state.out.push(...held);
    return;
  }
  if (!wasOver)
    log(state, "warn", "coordinate" in account ? "repository-budget-hit" : "author-budget-hit", undefined, account);
  for (const { relay: key, type: _type, account: _account, ...arrival } of held) {
    oneOfferLess(state, relays.get(key));
    offer(state, key, arrival);
  }
}

/** Layer 1 and the state layer ask for what strangers wrote, and lists are looked for of who is only named: that we refuse most of it is not the relay's fault. */
const isExpectedRefusal = (event: NostrEvent): boolean =>
  event.kind === kinds.announcement || event.kind === kinds.state || participantKinds.includes(event.kind);

export function onVerdict(state: SyncState, input: Extract<Input, { type: "verdict" }>): void {
  const { event, outcome, source } = input;
  const { config } = state;
  const relay = state.relays.get(input.relay);
  const isNew = outcome.type === "stored" || outcome.type === "held";
  if (isNew && relay) countNew(state, relay);
  oneOfferLess(state, relay);
  if (input.account) settleBudget(state, input.account, isNew);
  state.remembered.note(event, outcome, input.relay, state.now, state.out);
  if (event.kind === kinds.relayList) onListJudged(state, event, outcome);
  if (isNew && input.isFromOutbox) tally(state, "outbox_events", relay);
  if ((outcome.type === "held" || outcome.type === "waiting") && gitDataKinds.has(event.kind)) {
    state.out.push({ type: "servedThere", relay: input.relay, id: event.id });
  }
  if (isNew) {
    tally(state, "events", undefined, source);
    if (source === "live") {
      log(state, "debug", "live-event", relay, { id: event.id, kind: event.kind });
      if (outcome.type === "stored" && input.isCurrent) {
        state.out.push({ type: "observeLag", seconds: Math.max(0, state.now.wallMs / 1000 - event.created_at) });
      }
    }
    if (relay && !input.layerFour) noteHistory(state, relay, source);
    noteNew(state, relay, event);
    if (outcome.type === "stored") judgeAgain(state, event, undefined);
  }
  if (!relay) return;
  if (isTrouble(outcome)) resyncLater(state, relay);
  if (isOurs(outcome)) return;
  relay.judged += 1;
  if (outcome.type === "refused" && !isExpectedRefusal(event)) relay.refused += 1;
  if (relay.judged < config.syncRefusedSampleEvents) return;
  const isMostlyRefused = relay.refused * 100 > relay.judged * config.syncRefusedMaxPercent;
  relay.judged = 0;
  relay.refused = 0;
  if (isMostlyRefused) pause(state, relay, "mostly-refused", config.syncRefusedPauseSecs * secondMs);
}

/** For the summaries; what live should have brought is also counted as a gap. */
function noteHistory(state: SyncState, relay: Relay, source: EventSource): void {
  if (source !== "startup" && source !== "reconnect" && source !== "daily") return;
  relay.newSince[source] += 1;
  if (source !== "startup") tally(state, "gap_events", relay);
}

function noteNew(state: SyncState, relay: Relay | undefined, event: NostrEvent): void {
  for (const [name, value] of event.tags) {
    const root =
      name !== undefined && value !== undefined && idTag.test(name) ? state.wanted.rootNumber(value) : undefined;
    if (root === undefined) continue;
    state.wanted.noteActivity(root, Math.min(event.created_at, state.now.wallMs / 1000));
    if (relay) reconsider(state, relay, rootItem(root));
  }
}

function countNew(state: SyncState, relay: Relay): void {
  const room = roomToday(state, relay) - 1;
  relay.newToday += 1;
  relay.lastNewMs = state.now.monotonicMs;
  if (room > 0) return;
  pause(state, relay, "relay-budget-hit", relay.dayStartMs + state.config.dayMs - state.now.monotonicMs);
}

function pause(state: SyncState, relay: Relay, code: string, forMs: number): void {
  state.health.of(relay.key).pausedUntilMs = state.now.monotonicMs + forMs;
  log(state, "warn", code, relay, { forMs: Math.round(forMs) });
  disconnect(state, relay);
  state.touched.add(relay);
}

/** False: there was no room for all of them. A relay that is away is asked when it is back. */
function askFor(state: SyncState, relay: Relay, ids: readonly EventId[], claim?: Owed["claim"]): boolean {
  askDirectly(state, relay, ids, claim);
  state.touched.add(relay);
  return ids.every((id) => relay.direct.has(id));
}

/** What does not fit comes with a full sync: it is remembered no more. */
function fetchCold(state: SyncState, found: readonly ColdId[]): void {
  for (const { id, relay: key } of found) {
    const relay = state.relays.get(key);
    if (relay && !askFor(state, relay, [id], "sent-once")) resyncLater(state, relay);
  }
}

/** Their relay is away, or followed no more: those that are there may have them too. */
function askOthers(state: SyncState, found: readonly ColdId[]): void {
  const isThere = (relay: Relay | undefined): boolean => relay?.status === "connected";
  const ids = found.filter(({ relay: key }) => !isThere(state.relays.get(key))).map(({ id }) => id);
  if (ids.length === 0) return;
  for (const relay of state.relays.values()) {
    if (isThere(relay) && !askFor(state, relay, ids)) relay.gaveUpIds = true;
  }
}

/** Something is here that may make rejected events valid: hot ones are offered at once, cold ones fetched. */
function judgeAgain(state: SyncState, event: NostrEvent, coordinate: string | undefined): void {
  const { remembered } = state;
  const offered = new Set<string>();
  for (const hot of remembered.hotFor(event, coordinate)) {
    offered.add(hot.event.id);
    if (remembered.cold.delete(hot.event.id)) state.out.push({ type: "forget", id: hot.event.id });
    offer(state, hot.relay, { source: "direct", layerFour: false, event: hot.event });
  }
  if (event.kind !== kinds.announcement) return;
  const cold = remembered.coldFor(event, state.out).filter(({ id }) => !offered.has(id));
  fetchCold(state, cold);
  askOthers(state, cold);
}

/** The newest version at an address is gone: older ones may take its place; what it refused is forgotten. */
function newestGone(state: SyncState, { pubkey, identifier }: Address): void {
  const found = state.remembered.takeIdentifier(pubkey, identifier, state.out);
  const superseded = found.filter(({ reason }) => reason === "superseded");
  fetchCold(state, superseded);
  askOthers(state, superseded);
}

/** What the lists refused is fetched at once; announcements that a ban removed are found a little later (core.ts). */
export function listsChanged(state: SyncState, archive: boolean): void {
  const { remembered } = state;
  fetchCold(state, remembered.takeRefused(byLists, state.out));
  state.listsChanged = true;
  state.listsChangedMs = state.now.monotonicMs;
  if (!archive) return;
  // What did not list us may be mirrored now: announcements are asked for again, new services followed from now on.
  remembered.takeRefused(new Set(["service-not-listed"]), state.out);
  followBootstrap(state);
  for (const relay of state.relays.values()) compareAnnouncements(state, relay);
}

function compareAnnouncements(state: SyncState, relay: Relay): void {
  makeFresh(state, relay, announcementsItem);
  state.touched.add(relay);
}

/** Once a minute, some relays at a time; the next round not before this one has rested. */
export function compareAfterLists(state: SyncState): void {
  const { config, toCompare } = state;
  const nowMs = state.now.monotonicMs;
  if (state.listsChanged && toCompare.size === 0 && nowMs >= state.listsComparedMs + config.listsEveryMs) {
    for (const relay of state.relays.values()) toCompare.add(relay);
    state.listsChanged = false;
    state.listsComparedMs = nowMs;
  }
  for (const relay of [...toCompare].slice(0, config.relaysComparedAtOnce)) {
    toCompare.delete(relay);
    // A full sync begun since then asks for all announcements anyway.
    if (!relay.forgotten && relay.lastFullMs <= state.listsChangedMs) compareAnnouncements(state, relay);
  }
}

/** Somebody here needs these events. */
export function wantIds(state: SyncState, ids: readonly EventId[], coordinate: string): void {
  const repo = state.wanted.repos.get(coordinate);
  for (const relay of state.relays.values()) {
    if (relay.bootstrap || repo?.placed.has(relay.ix)) askFor(state, relay, ids);
  }
}

export function ignore(state: SyncState, relays: ReadonlySet<RelayKey>): void {
  state.ignored = relays;
  for (const relay of state.relays.values()) {
    if (relays.has(relay.key)) disconnect(state, relay);
    state.touched.add(relay);
  }
}

/** Forgets why it was left alone; a link that is open is made anew. */
export function reconnect(state: SyncState, key: RelayKey): void {
  const relay = state.relays.get(key);
  if (!relay || state.ignored.has(key)) return;
  disconnect(state, relay);
  state.health.forgive(key);
  state.out.push({ type: "dropNaughty", relay: key });
  relay.notBeforeMs = state.now.monotonicMs;
  state.touched.add(relay);
}
