// Everything the core holds between two inputs, of all relays together and of each, and what one step may use: the
// time, random numbers, and where its commands, log lines and counts go. Data only: each part of a relay is changed by
// the file that is named beside it.

import { SetsByKey } from "../../base/collections.js";
import { HostHealth, NaughtyList } from "../../net/health.js";
import type { RelayLimits } from "../../net/relay-dialer.js";
import type { RelayUrl } from "../../net/url.js";
import type { EventId, Pubkey } from "../../nostr/event.js";
import { Budgets } from "./budgets.js";
import type { SyncConfig } from "./config.js";
import {
  type Asked,
  type Item,
  type Job,
  type Layer,
  type Owed,
  type Related,
  type Sweep,
  slots,
  type Word,
} from "./job.js";
import {
  type Arrival,
  type Command,
  type CounterName,
  type KeptRelay,
  type NaughtyKind,
  naughtyKinds,
  type Random,
  type RelayKey,
  type Sides,
  type Time,
} from "./messages.js";
import { OutboxWork, Participants } from "./participants.js";
import { RelayLists } from "./relay-lists.js";
import { Remembered } from "./remembered.js";
import { type Level, Wanted } from "./wanted.js";

export class SyncState {
  /** What the step under way may use: the time, random numbers, and where its commands go. */
  now: Time = { wallMs: 0, monotonicMs: 0 };
  random: Random = () => 0;
  out: Command[] = [];
  readonly wanted: Wanted;
  readonly health: HostHealth<NaughtyKind>;
  readonly remembered: Remembered;
  readonly budgets: Budgets;
  readonly relays = new Map<RelayKey, Relay>();
  readonly byIx: (Relay | undefined)[] = [];
  readonly freeIx: number[] = [];
  readonly byHost = new SetsByKey<string, number>();
  /** owner → relay number → how many of his repos list it. */
  readonly byOwner = new Map<string, Map<number, number>>();
  /** Coordinates some of whose listed relays found no place under the caps. */
  readonly unplaced = new Set<string>();
  /** The operator wants nothing to do with these. */
  ignored: ReadonlySet<RelayKey> = new Set();
  /** Few, and walked for every repo that changes. */
  readonly bootstrap = new Set<Relay>();
  bootstrapNamesStates = true;
  /** Relays that targets changed in this step. */
  readonly touched = new Set<Relay>();
  readonly dialing = new Set<Relay>();
  readonly dialQueue: Relay[] = [];
  /** Relays whose turn it is to be synced in full, and since when; those that wait for theirs (rounds.ts). */
  readonly fullSyncs = new Map<Relay, number>();
  readonly fullSyncQueue = new Set<Relay>();
  /** No relay is due before this; it may be earlier than the first that is. */
  nextDueMs = Number.POSITIVE_INFINITY;
  windowEndMs = Number.POSITIVE_INFINITY;
  tidyMs = Number.POSITIVE_INFINITY;
  /** Intake is full: no socket is read (arrivals.ts). */
  readingHeld = false;
  /** History downloads have used up their share until then (history.ts). */
  pacedUntilMs = 0;
  /** own-server.ts: the lists changed since announcements were last compared because of that. */
  listsChanged = false;
  listsChangedMs = Number.NEGATIVE_INFINITY;
  listsComparedMs = Number.NEGATIVE_INFINITY;
  readonly toCompare = new Set<Relay>();
  /** Participants' own relays: who takes part, where each writes, and which repositories are to be looked at (outbox.ts). */
  readonly participants: Participants;
  readonly lists: RelayLists;
  readonly outbox = new OutboxWork<Relay>();
  nextName = 1;
  nextJob = 1;
  nextLink = 1;
  started = false;
  lastStep: Time | undefined;
  /** What was kept of relays that are not followed yet; empty once our own history has been told. */
  readonly keptRelays = new Map<RelayKey, KeptRelay>();
  resumed = false;
  tidies = 0;

  readonly #authors = new Map<Pubkey, Pubkey>();

  constructor(readonly config: SyncConfig) {
    this.wanted = new Wanted(config);
    this.health = new HostHealth(config, new NaughtyList(config, naughtyKinds, "dns-not-found"));
    this.remembered = new Remembered(config);
    this.budgets = new Budgets(config);
    this.participants = new Participants(config);
    this.lists = new RelayLists(config);
  }

  /** One text for an author, however many relays' repositories it wrote in. */
  sharedAuthor(author: Pubkey): Pubkey {
    const known = this.#authors.get(author);
    if (known !== undefined) return known;
    if (this.#authors.size >= this.config.maxSharedAuthors) this.#authors.clear();
    this.#authors.set(author, author);
    return author;
  }
}

type Log = Extract<Command, { type: "log" }>;

export function log(
  state: SyncState,
  level: Log["level"],
  code: string,
  relay: Relay | undefined,
  fields?: NonNullable<Log["fields"]>,
): void {
  state.out.push({ type: "log", level, code, ...(relay && { relay: relay.key }), ...(fields && { fields }) });
}

export function tally(
  state: SyncState,
  counter: CounterName,
  relay: Relay | undefined,
  label?: string,
  by?: number,
): void {
  const of = { ...(relay && { relay: relay.key }), ...(label !== undefined && { label }) };
  state.out.push({ type: "count", counter, ...of, ...(by !== undefined && { by }) });
}

/** The last comparison of a repository with a relay after which nothing was missing here. */
export interface Compared {
  readonly cleanWallMs: number;
  /** Where negentropy compared this repository by itself. */
  readonly sides: Sides | undefined;
}

/** A live subscription over one group of items (live.ts). Three filters of the same values, or one. */
export class Chunk {
  items: Item[] = [];
  bytes = 0;
  /** Open subscriptions; several when the filters do not fit into one frame. */
  subs: string[] = [];
  /** Subscriptions among them that have not reached EOSE. */
  unanswered: string[] = [];
  openedMs = 0;
  /** Items changed since it was opened. */
  dirty = false;
  retryAtMs = 0;
  refusals = 0;
  awaitsAuth = false;
  /** Wall time at which the relay closed it: what came since then is caught up after reopening. */
  lostAtWallMs: number | undefined;

  constructor(
    readonly id: number,
    readonly layer: Layer,
    /** Made by halving or for one long value. */
    readonly closedToNew: boolean,
  ) {}
}

interface Replacement {
  readonly into: Chunk;
  /** Subscriptions that go when the chunk's new ones have answered. */
  readonly oldSubs: readonly string[];
  readonly deadlineMs: number;
}

/** A round of layer 4 (rounds.ts). It outlives links. */
export class LayerFour {
  request: number | undefined;
  requestedMs = 0;
  coordinates: readonly string[] = [];
  after: string | undefined;
  readonly ready: Related[] = [];
  readonly authors = new Set<Pubkey>();

  constructor(
    /** Or only who wrote what is here, for the hourly look at deletions. */
    readonly about: "everything" | "authors",
    /** Those not looked up yet. */
    readonly repos: number[],
    readonly begunMs: number,
  ) {}
}

/** The hourly look at deletions (rounds.ts). */
export class Deletions {
  /** Wall time at which the round under way began; undefined between rounds. */
  startedWallMs: number | undefined;
  failed = false;
  readonly ready: Related[] = [];
  /** All authors of this pass, and how many of them are done. */
  all: readonly Pubkey[] = [];
  at = 0;
  /** Wall times at which this pass and the last complete one began. */
  passWallMs = 0;
  sinceWallMs: number | undefined;

  constructor(public dueMs: number) {}
}

/** Items without a live filter, asked for in turn (rounds.ts). */
export class Turn {
  items = 0;
  /** When the next round begins; never while one is under way. */
  dueMs = Number.POSITIVE_INFINITY;
  /** Wall time at which the last round began that was answered completely; 0 when there was none. */
  sinceWallMs = 0;
  /** When the round under way began. */
  round: Time | undefined;
}

/** One list a layer. */
export const freshLists = (): Item[][] => [[], [], [], [], []];

export class Relay {
  // targets.ts
  wsUrl: RelayUrl | undefined;
  wssUrl: RelayUrl | undefined;
  /** How many list it, by level. */
  readonly repos: Record<Level, number> = { full: 0, "state-only": 0 };
  /** Every item in targets, with its word (items.ts). */
  readonly items = new Map<Item, Word>();
  /** Per layer; entries are checked against `items` when taken. */
  fresh: Item[][] = freshLists();
  unplaced: Item[] = [];
  failedItems = 0;
  confirmedItems = 0;
  barredItems = 0;
  // connection.ts
  status: "disconnected" | "connecting" | "connected" = "disconnected";
  link = 0;
  dialedMs = 0;
  connectedMs = 0;
  awaitsDial = false;
  notBeforeMs: number;
  historyNotBeforeMs = 0;
  limits: RelayLimits = {};
  good = false;
  goodMoment: Time | undefined;
  /** In step when it was last looked at, and the last moment at which it was, if it is no more (standing.ts). */
  inStep = false;
  lastInStep: Time | undefined;
  /** Repositories whose batches were confirmed in this round, and when each was last found to lack nothing. */
  readonly comparing = new Map<number, Sides | undefined>();
  /** Those of which something did not come. */
  readonly unclean = new Set<number>();
  readonly compared = new Map<number, Compared>();
  /** Over restarts (standing.ts): what was loaded and not decided yet, or what was saved last. */
  kept:
    | { readonly type: "loaded"; readonly text: ""; readonly entry: KeptRelay }
    | { readonly type: "saved"; readonly text: string }
    | undefined;
  lastWhole: KeptRelay["inStep"];
  /** Of its items; undefined when they have changed since it was made. */
  fingerprint: string | undefined;
  catchUpFailed = false;
  nextDailyMs = Number.POSITIVE_INFINITY;
  isInFullSync = false;
  /** A full sync was begun and has not been kept for a restart yet. */
  owesKeeping = false;
  lastFullMs = Number.NEGATIVE_INFINITY;
  /** Why items are fresh: names the source of what their history brings. */
  round: "startup" | "daily" = "startup";
  /** New events by what brought them, until the next summary in the log. */
  readonly newSince = { startup: 0, reconnect: 0, daily: 0 };
  authPending = false;
  // live.ts
  chunks: Chunk[] = [];
  readonly liveSubs = new Map<string, { readonly chunk: Chunk; readonly filters: number }>();
  nextChunk: number = slots.firstChunk;
  /** Items wait for a merge to end before they are placed. */
  placingWaits = false;
  consolidated = false;
  /** No live root was active before this second; some may all have become active later. */
  leastActive = Number.POSITIVE_INFINITY;
  liveMode: "limit-0" | "since" = "limit-0";
  replacement: Replacement | undefined;
  // arrivals.ts
  /** Its socket is not read since then. */
  deafSinceMs: number | undefined;
  // rounds.ts
  readonly turns = { roots: new Turn(), repos: new Turn(), outbox: new Turn() };
  // history.ts
  jobs: Job[] = [];
  readonly bySub = new Map<string, Asked>();
  sweeps: Sweep[] = [];
  retries: { readonly dueMs: number; readonly items: readonly Item[] }[] = [];
  /** By `askDirectly` only. */
  readonly direct = new Map<EventId, Owed["claim"]>();
  owed: Owed[] = [];
  /** Since the last full sync: something is there and not here (query.ts). */
  gaveUpIds = false;
  /** The pause between two jobs ends. */
  nextJobMs = 0;
  /** Requests since the turn began (rounds.ts). */
  turnMs = Number.NEGATIVE_INFINITY;
  askedInTurn = 0;
  layerFour: LayerFour | undefined;
  /** The first round begins as soon as the relay is live. */
  fourDueMs = 0;
  /** Who wrote what is here of its repositories, as the last look found. */
  authors: ReadonlySet<Pubkey> | undefined;
  readonly deletions: Deletions;
  /** Events a page has at most, as far as pages have shown it. */
  learnedCap = Number.POSITIVE_INFINITY;
  noNegentropyUntilMs = 0;
  negentropyFailures = 0;
  warnedNegentropy = false;
  /** How often sessions were halved by time since the last that succeeded. */
  splitsInVain = 0;
  peerMissing = 0;
  peerMissingTold = 0;
  // arrivals.ts
  lastEventWallMs: number | undefined;
  offersInFlight = 0;
  readingPaused = false;
  dayStartMs: number;
  newToday = 0;
  /** When it last brought something new, or began to be followed. */
  lastNewMs: number;
  /** Wait for verdicts that tell whether there is room for them today; few, because reading pauses. */
  readonly held: Arrival[] = [];
  judged = 0;
  /** When a full sync fetches what our own trouble lost, and how many there were since the last without trouble. */
  resyncMs = Number.POSITIVE_INFINITY;
  resyncs = 0;
  refused = 0;
  // outbox.ts
  /** Repo number → the participants that write here; and in how many repos each of them is. */
  readonly outbox = new Map<number, readonly Pubkey[]>();
  readonly outboxAuthors = new Map<Pubkey, number>();
  /** It is one of those with most participants: they are listened to as they write. */
  isOutboxLive = false;
  /** What is live of its outbox items has to be arranged anew (outbox-filters.ts). */
  outboxMoved = false;
  // relay-lists.ts
  /** Whose relay lists are asked for here; only for that, or for single events, is it followed until then. */
  readonly listsWanted = new Set<Pubkey>();
  passesByUntilMs = Number.NEGATIVE_INFINITY;
  // core.ts
  /** When it wants to be looked at again. */
  dueMs = Number.POSITIVE_INFINITY;
  forgotten = false;

  constructor(
    readonly ix: number,
    readonly key: RelayKey,
    readonly host: string,
    /** Always wanted, never forgotten; changes with the list of services that are mirrored (targets.ts). */
    public bootstrap: boolean,
    readonly followedMs: number,
    firstDeletionsMs: number,
  ) {
    this.notBeforeMs = followedMs;
    this.dayStartMs = followedMs;
    this.lastNewMs = followedMs;
    this.deletions = new Deletions(firstDeletionsMs);
  }
}

export const repoCount = ({ repos }: Relay): number => repos.full + repos["state-only"];

/** It is asked for relay lists or single events, and forgotten afterwards. */
export const passesBy = ({ passesByUntilMs }: Relay): boolean => passesByUntilMs !== Number.NEGATIVE_INFINITY;

/** An announcement lists it, or the operator does. */
export const isListed = (relay: Relay): boolean => relay.bootstrap || repoCount(relay) > 0;

export const hasTargets = (relay: Relay): boolean => isListed(relay) || relay.outbox.size > 0 || passesBy(relay);

/** Only announcements that wait name it. */
export const isWaitingOnly = ({ bootstrap, repos }: Relay): boolean =>
  !bootstrap && repos.full === 0 && repos["state-only"] > 0;

export function waitingOnlyRelays({ relays }: SyncState): number {
  let count = 0;
  for (const relay of relays.values()) if (isWaitingOnly(relay)) count += 1;
  return count;
}

/** Live filters that the relay holds for us. */
export function openFilters({ liveSubs }: Relay): number {
  let open = 0;
  for (const { filters } of liveSubs.values()) open += filters;
  return open;
}

/** The address to dial: as listed, wss if listed both ways. */
export const urlOf = (relay: Relay): Relay["wssUrl"] => relay.wssUrl ?? relay.wsUrl;
