// Participants' own relays (grasp.md, GRASP-03): clients read a repository's conversation only from the repository's
// relays, so that what somebody sent only to relays of his own is gathered here. Decides which relays are asked about
// which repository for whom, under caps; what is asked there is an item like any other (outbox-filters.ts has its filters):
// history once, then in turn every 55 min, live where most participants write. A repository's own relays are not asked
// twice, and private repositories take no part.

import { kinds, type Pubkey, rootKinds } from "../../nostr/event.js";
import { coordinatesOf } from "./arrivals.js";
import { lookbackMs } from "./config.js";
import { disconnect } from "./connection.js";
import { hasTargets, log, type Relay, type SyncState } from "./core-state.js";
import { addItem, makeFresh, removeItem } from "./items.js";
import { outboxItem } from "./job.js";
import { changeLater, lookForLists, onList, tidyLookUps } from "./list-look-ups.js";
import type { Input, Participant } from "./messages.js";
import { namedIn } from "./participants.js";
import { forgetRelay, hostHasRoom, relayOutside } from "./relay-table.js";
import { type Changes, type ListedRelay, listedRelay, type Repo } from "./wanted.js";

/** Repositories without any place that get one in a minute. */
const claimsAtOnce = 20;

const isMeant = ({ config }: SyncState, repo: Repo): boolean =>
  config.syncPlusEnabled && !repo.gone && repo.level === "full" && !repo.isPrivate;

/** Repositories are new, have other announcements or relays, or are gone; roots are new. */
export function onWindow(state: SyncState, { repos, rootsAdded }: Changes): void {
  for (const repo of repos) followParticipants(state, repo);
  for (const { root, repo } of rootsAdded) {
    if (repo.outbox.size > 0) onNewRoot(state, repo, state.wanted.activeSeconds(root));
  }
}

function followParticipants(state: SyncState, repo: Repo): void {
  const { participants, outbox } = state;
  if (!isMeant(state, repo)) {
    leave(state, repo);
    return;
  }
  if (participants.knows(repo)) changeLater(state, repo);
  participants.follow(repo);
  lookUpLater(state, repo);
  lookUpSome(state, outbox.toLookUp);
}

/** Until then nobody knows who takes part, and whoever is heard of is only noted. */
const isLookedUp = ({ participantsMs }: Repo): boolean => participantsMs > Number.NEGATIVE_INFINITY;

/** Its maintainers may be others. */
export function lookUpLater({ participants, outbox }: SyncState, repo: Repo): void {
  if (participants.knows(repo)) outbox.toLookUp.add(repo);
}

function lookUpSome(state: SyncState, waiting: Set<Repo>): void {
  const { lookedUp } = state.outbox;
  for (const repo of waiting) {
    if (lookedUp.size >= state.config.participantLookUps) return;
    if (lookedUp.has(repo)) continue;
    const fromMs = repo.participantsMs + state.config.participantLookUpAgainMs;
    if (fromMs > state.now.monotonicMs) {
      state.outbox.dueMs = Math.min(state.outbox.dueMs, fromMs);
      continue;
    }
    waiting.delete(repo);
    lookedUp.set(repo, state.now.monotonicMs);
    state.out.push({ type: "lookUpParticipants", coordinate: repo.coordinate });
  }
}

function leave(state: SyncState, repo: Repo): void {
  const { participants, outbox } = state;
  participants.drop(repo);
  for (const ix of [...repo.outbox]) take(state, state.byIx[ix]!, repo);
  for (const set of [outbox.changed, outbox.toLookUp, outbox.unplaced]) set.delete(repo);
  outbox.lookedUp.delete(repo);
}

export function onParticipants(state: SyncState, input: Extract<Input, { type: "participants" }>): void {
  const { participants, outbox, wanted, now } = state;
  const repo = wanted.repos.get(input.coordinate);
  const beganMs = repo && outbox.lookedUp.get(repo);
  if (!repo || beganMs === undefined) return;
  outbox.lookedUp.delete(repo);
  const isFirst = !isLookedUp(repo);
  repo.participantsMs = now.monotonicMs;
  const beganSeconds = (now.wallMs - (now.monotonicMs - beganMs)) / 1000;
  const isNoted = ({ role, activeSeconds }: Participant): boolean => role === "author" && activeSeconds >= beganSeconds;
  if (participants.replace(repo, input.participants, isNoted) || isFirst) changeLater(state, repo);
  for (const list of input.lists) if (list.kind === kinds.relayList) onList(state, list, true);
  lookUpSome(state, outbox.toLookUp);
}

type Accepted = SyncState["outbox"]["accepted"][number];

/** Something was accepted here: whoever wrote it takes part, and whom a root names. */
function noteParticipants(state: SyncState, event: Accepted): void {
  const { participants, wanted, config } = state;
  const activeSeconds = Math.min(event.created_at, state.now.wallMs / 1000);
  const author: Participant = { pubkey: event.pubkey, role: "author", activeSeconds };
  const named = rootKinds.includes(event.kind) ? namedIn(event, config.maxNamedPerRoot) : [];
  for (const coordinate of coordinatesOf(state, event)) {
    const repo = wanted.repos.get(coordinate);
    if (!repo) continue;
    let isNew = participants.note(repo, author);
    for (const pubkey of named) isNew = participants.note(repo, { pubkey, role: "named", activeSeconds: 0 }) || isNew;
    if (isNew && isLookedUp(repo)) changeLater(state, repo);
  }
}

/** Of a root that came late, what participants wrote about it may be older than the next pass looks back. */
function onNewRoot(state: SyncState, repo: Repo, rootSeconds: number): void {
  const isLate = rootSeconds * 1000 < state.now.wallMs - lookbackMs(state.config);
  for (const ix of repo.outbox) {
    const relay = state.byIx[ix]!;
    if (isLate) makeFresh(state, relay, outboxItem(repo.ix));
    relay.outboxMoved = true;
    state.touched.add(relay);
  }
}

/** What has changed since the last window. */
export function arrangeOutboxes(state: SyncState): void {
  for (const event of state.outbox.accepted.splice(0)) {
    noteParticipants(state, event);
    if (event.kind === kinds.relayList) onList(state, event);
  }
  const changed = [...state.outbox.changed];
  state.outbox.changed.clear();
  state.outbox.dueMs = Number.POSITIVE_INFINITY;
  for (const repo of changed) {
    if (!state.participants.knows(repo) || !isLookedUp(repo)) continue;
    lookForLists(state, state.participants.keysOf(repo));
    assign(state, repo);
  }
  lookUpSome(state, state.outbox.toLookUp);
  chooseLive(state);
}

interface Place {
  readonly listed: ListedRelay;
  readonly authors: Pubkey[];
}

/** Whom to ask about a repository, and for whom: the relays of the most active first, until there are enough. */
function placesOf(state: SyncState, repo: Repo): Place[] {
  const { config, relays, ignored, health, now } = state;
  const isOwn = (key: string): boolean => repo.placed.has(relays.get(key)?.ix ?? -1);
  const isUseless = (key: string): boolean =>
    ignored.has(key) || (relays.get(key)?.status !== "connected" && health.isHopeless(key, now.monotonicMs));
  const places = new Map<string, Place>();
  for (const { pubkey } of state.participants.of(repo)) {
    for (const listed of writesTo(state, pubkey)) {
      if (config.ownServices.includes(listed.key) || isOwn(listed.key) || isUseless(listed.key)) continue;
      const place = places.get(listed.key);
      if (place) place.authors.push(pubkey);
      else if (places.size < config.maxOutboxRelaysPerRepository) places.set(listed.key, { listed, authors: [pubkey] });
    }
  }
  return [...places.values()];
}

/** Who has no list may be found at the fallback relays. */
function writesTo({ config, lists }: SyncState, author: Pubkey): readonly ListedRelay[] {
  const known = lists.relaysOf(author);
  if (!known) return [];
  return known.isFound ? known.relays : config.fallbackRelays.flatMap((url) => listedRelay(url) ?? []);
}

function assign(state: SyncState, repo: Repo): void {
  const keep = new Set<number>();
  let hasAllPlaces = true;
  for (const { listed, authors } of placesOf(state, repo)) {
    const relay = relayFor(state, listed);
    if (relay) {
      give(state, relay, repo, authors);
      keep.add(relay.ix);
    } else hasAllPlaces = false;
  }
  for (const ix of [...repo.outbox]) if (!keep.has(ix)) take(state, state.byIx[ix]!, repo);
  if (hasAllPlaces) state.outbox.unplaced.delete(repo);
  else state.outbox.unplaced.add(repo);
}

/** Under the caps: so many outbox relays in all, so many relays on one host. */
function relayFor(state: SyncState, listed: ListedRelay): Relay | undefined {
  const known = state.relays.get(listed.key);
  if (known && known.outbox.size > 0) return known;
  if (state.outbox.asked.size >= state.config.maxOutboxRelays) return undefined;
  return known || hostHasRoom(state, listed.host) ? relayOutside(state, listed) : undefined;
}

function give(state: SyncState, relay: Relay, repo: Repo, authors: readonly Pubkey[]): void {
  const before = relay.outbox.get(repo.ix);
  const isSame = before?.length === authors.length && authors.every((author) => before.includes(author));
  if (isSame) return;
  countAuthors(relay, before ?? [], -1);
  countAuthors(relay, authors, 1);
  relay.outbox.set(repo.ix, authors);
  repo.outbox.add(relay.ix);
  state.outbox.asked.add(relay);
  relay.outboxMoved = true;
  state.touched.add(relay);
  if (!before) addItem(state, relay, outboxItem(repo.ix));
  // What those who are new here wrote before is asked for with the rest.
  else if (authors.some((author) => !before.includes(author))) makeFresh(state, relay, outboxItem(repo.ix));
}

function take(state: SyncState, relay: Relay, repo: Repo): void {
  countAuthors(relay, relay.outbox.get(repo.ix) ?? [], -1);
  relay.outbox.delete(repo.ix);
  repo.outbox.delete(relay.ix);
  removeItem(state, relay, outboxItem(repo.ix));
  if (relay.outbox.size === 0) state.outbox.asked.delete(relay);
}

function countAuthors({ outboxAuthors }: Relay, authors: readonly Pubkey[], by: 1 | -1): void {
  for (const author of authors) {
    const count = (outboxAuthors.get(author) ?? 0) + by;
    if (count > 0) outboxAuthors.set(author, count);
    else outboxAuthors.delete(author);
  }
}

/** Those with most participants are listened to as they write. */
function chooseLive(state: SyncState): void {
  const ordered = [...state.outbox.asked].sort((a, b) => b.outboxAuthors.size - a.outboxAuthors.size || a.ix - b.ix);
  for (const [at, relay] of ordered.entries()) {
    const isLive = at < state.config.maxLiveOutboxRelays;
    if (relay.isOutboxLive === isLive) continue;
    Object.assign(relay, { isOutboxLive: isLive, outboxMoved: true });
    state.touched.add(relay);
  }
}

/** Nobody asks it about participants any more; whose place it had is looked at again. */
function release(state: SyncState, relay: Relay): void {
  for (const ix of [...relay.outbox.keys()]) {
    const repo = state.wanted.repo(ix)!;
    take(state, relay, repo);
    changeLater(state, repo);
  }
  if (hasTargets(relay)) return;
  disconnect(state, relay);
  state.out.push({ type: "dropKept", relay: relay.key });
  log(state, "info", "relay-gave-way", relay);
  forgetRelay(state, relay);
}

/** Where all places are taken: hopeless relays go, and a repository without any gets one from who has most. */
function makeRoom(state: SyncState): void {
  const { unplaced, asked } = state.outbox;
  if (unplaced.size === 0 || asked.size < state.config.maxOutboxRelays) return;
  const { health, now } = state;
  for (const relay of [...asked]) {
    if (relay.status !== "connected" && health.isHopeless(relay.key, now.monotonicMs)) release(state, relay);
  }
  let left = claimsAtOnce;
  for (const repo of [...unplaced]) {
    if (asked.size >= state.config.maxOutboxRelays && repo.outbox.size === 0 && left > 0) {
      const goes = oneOfTheMost(state, repo);
      if (goes) release(state, goes);
      left -= 1;
    }
    assign(state, repo);
  }
}

/** A relay that is asked for one repository alone, which has more of them than any other. */
function oneOfTheMost({ outbox, wanted }: SyncState, claimant: Repo): Relay | undefined {
  let found: Relay | undefined;
  let most = 1;
  for (const relay of outbox.asked) {
    if (relay.outbox.size !== 1) continue;
    const [ix = 0] = relay.outbox.keys();
    const repo = wanted.repo(ix);
    if (!repo || repo === claimant || repo.outbox.size <= most) continue;
    [found, most] = [relay, repo.outbox.size];
  }
  return found;
}

/** Every minute. */
export function tidyOutboxes(state: SyncState): void {
  const { participants, outbox, wanted, lists, config } = state;
  const nowMs = state.now.monotonicMs;
  if (outbox.isOn !== config.syncPlusEnabled) {
    outbox.isOn = config.syncPlusEnabled;
    for (const repo of wanted.repos.values()) followParticipants(state, repo);
  }
  tidyLookUps(state);
  for (const repo of participants.repos) {
    if (nowMs - repo.participantsMs >= config.dayMs) outbox.toLookUp.add(repo);
  }
  for (const [repo, beganMs] of outbox.lookedUp) if (nowMs - beganMs > config.dayMs) outbox.lookedUp.delete(repo);
  lookUpSome(state, outbox.toLookUp);
  for (const repo of participants.repos) if (isLookedUp(repo)) lookForLists(state, participants.keysOf(repo));
  lists.forget((author) => participants.takesPart(author) || outbox.awaited.has(author));
  makeRoom(state);
  chooseLive(state);
}
