// What was refused or not here, and is worth a look now: something arrived that it refers to, the lists changed, what
// superseded it is gone, somebody needs it. Judged at once where the event is at hand, else fetched by id from its relay:
// never more at once than the relay has room for, and not all relays together.

import type { Address, NostrEvent } from "../../nostr/event.js";
import type { EventId } from "../../nostr/ids.js";
import { kinds } from "../../nostr/kinds.js";
import { offer } from "./arrivals.js";
import type { ColdId } from "./cold-ids.js";
import { resyncLater } from "./connection.js";
import { announcementsItem } from "./items.js";
import { byLists } from "./refusals.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { followBootstrap } from "./targets.js";
import { makeFresh } from "./words.js";

/** False: there was no room for all of them. A relay that is away is asked when it is back. */
function askFor({ config, touched }: SyncState, relay: Relay, ids: readonly EventId[]): boolean {
  const asked = new Set(relay.direct);
  for (const id of ids) if (asked.size < config.maxDirectIds) asked.add(id);
  relay.direct = [...asked];
  touched.add(relay);
  return ids.every((id) => asked.has(id));
}

/** What does not fit comes with a full sync: it is remembered no more. */
function fetchCold(state: SyncState, found: readonly ColdId[], step: Step): void {
  const byRelay = new Map<Relay, EventId[]>();
  for (const { id, relay: key } of found) {
    const relay = state.relays.get(key);
    if (!relay) continue;
    const ids = byRelay.get(relay);
    if (ids) ids.push(id);
    else byRelay.set(relay, [id]);
  }
  for (const [relay, ids] of byRelay) if (!askFor(state, relay, ids)) resyncLater(state, relay, step);
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
export function judgeAgain(state: SyncState, event: NostrEvent, coordinate: string | undefined, step: Step): void {
  const { remembered } = state;
  const offered = new Set<string>();
  for (const hot of remembered.hotFor(event, coordinate)) {
    offered.add(hot.event.id);
    if (remembered.cold.delete(hot.event.id)) step.out.push({ type: "forget", id: hot.event.id });
    offer(state, hot.relay, { source: "direct", layerFour: false, event: hot.event }, step);
  }
  if (event.kind !== kinds.announcement) return;
  const cold = remembered.coldFor(event, step.out).filter(({ id }) => !offered.has(id));
  fetchCold(state, cold, step);
  askOthers(state, cold);
}

/** The newest version at an address is gone: older ones may take its place; what it refused is forgotten. */
export function newestGone(state: SyncState, { pubkey, identifier }: Address, step: Step): void {
  const found = state.remembered.takeIdentifier(pubkey, identifier, step.out);
  const superseded = found.filter(({ reason }) => reason === "superseded");
  fetchCold(state, superseded, step);
  askOthers(state, superseded);
}

/** What the lists refused is fetched at once; announcements that a ban removed are found a little later (tidying.ts). */
export function listsChanged(state: SyncState, archive: boolean, step: Step): void {
  const { remembered } = state;
  fetchCold(state, remembered.takeRefused(byLists, step.out), step);
  state.listsChanged = true;
  state.listsChangedMs = step.now.monotonicMs;
  if (!archive) return;
  // What did not list us may be mirrored now: announcements are asked for again, new services followed from now on.
  remembered.takeRefused(new Set(["service-not-listed"]), step.out);
  followBootstrap(state, step);
  for (const relay of state.relays.values()) compareAnnouncements(state, relay);
}

function compareAnnouncements(state: SyncState, relay: Relay): void {
  makeFresh(state, relay, announcementsItem);
  state.touched.add(relay);
}

/** Once a minute, some relays at a time; the next round not before this one has rested. */
export function compareAfterLists(state: SyncState, step: Step): void {
  const { config, toCompare } = state;
  const nowMs = step.now.monotonicMs;
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
