// Everything the core holds between two inputs, and what one step may use: the time, random numbers, and where its
// commands, log lines and counts go. Data only.

import type { Pubkey } from "../../nostr/ids.js";
import { Budgets } from "./budgets.js";
import type { SyncConfig } from "./config.js";
import { HealthBook } from "./health.js";
import type { Command, CounterName, KeptRelay, Random, RelayKey, Time } from "./messages.js";
import type { Relay } from "./relay.js";
import { Remembered } from "./remembered.js";
import { Wanted } from "./wanted.js";

export class SyncState {
  readonly wanted: Wanted;
  readonly health: HealthBook;
  readonly remembered: Remembered;
  readonly budgets: Budgets;
  readonly relays = new Map<RelayKey, Relay>();
  readonly byIx: (Relay | undefined)[] = [];
  readonly freeIx: number[] = [];
  readonly byHost = new Map<string, Set<number>>();
  /** owner → relay number → how many of his repos list it. */
  readonly byOwner = new Map<string, Map<number, number>>();
  /** Coordinates some of whose listed relays found no place under the caps. */
  readonly unplaced = new Set<string>();
  /** The operator wants nothing to do with these. */
  ignored: ReadonlySet<RelayKey> = new Set();
  waitingOnlyRelays = 0;
  /** Few, and walked for every repo that changes. */
  readonly bootstrap = new Set<Relay>();
  bootstrapNamesStates = true;
  /** Relays that targets changed in this step. */
  readonly touched = new Set<Relay>();
  readonly dialing = new Set<Relay>();
  readonly dialQueue: Relay[] = [];
  /** Relays whose turn it is to be synced in full, and since when; those that wait for theirs (pacing.ts). */
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
    this.health = new HealthBook(config);
    this.remembered = new Remembered(config);
    this.budgets = new Budgets(config);
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

/** What one step may use: the time, random numbers, and where its commands go. */
export interface Step {
  readonly now: Time;
  readonly random: Random;
  readonly out: Command[];
}

type Log = Extract<Command, { type: "log" }>;

export function log(
  step: Step,
  level: Log["level"],
  code: string,
  relay: Relay | undefined,
  fields?: NonNullable<Log["fields"]>,
): void {
  step.out.push({ type: "log", level, code, ...(relay && { relay: relay.key }), ...(fields && { fields }) });
}

export function tally(step: Step, counter: CounterName, relay: Relay | undefined, label?: string, by?: number): void {
  const of = { ...(relay && { relay: relay.key }), ...(label !== undefined && { label }) };
  step.out.push({ type: "count", counter, ...of, ...(by !== undefined && { by }) });
}
