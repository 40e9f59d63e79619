// What the core keeps between two inputs. One hunt: what a repository (or pull request) still lacks, where to look, and
// when the next attempt is due; it knows nothing of throttles or of other jobs (purgatory.md "Hunting", first table).
// Beside the jobs the moments to wake up at, and which servers were seen to serve what waits.

import { Heap, SetsByKey } from "../../base/collections.js";
import type { EventId } from "../../nostr/event.js";
import type { Oid } from "../../nostr/nip34.js";
import type { HuntUrl } from "./fetch-plan.js";
import type { Emit, FetchId, HuntConfig, JobKind, WaitingItem } from "./messages.js";

export interface RunningFetch {
  readonly id: FetchId;
  readonly job: HuntJob;
  readonly target: HuntUrl;
  readonly ids: readonly Oid[];
  /** The domain where it holds a place: its URL's, or the one it was redirected to. None while it moves over. */
  at: string | undefined;
  /** The domain whose leave it waits for. */
  wants: string | undefined;
  connections: number;
  /** Has run so long that the next URL may start beside it. */
  slow: boolean;
  cancelled: boolean;
  /** Made outside of an attempt, because the server serves an event that waits here. */
  readonly promised: boolean;
}

interface Item {
  readonly soft: boolean;
  readonly missing: Set<Oid>;
  /** URLs of servers that serve the event; each is asked for that once. */
  readonly promised: Set<string>;
}

/** 20 s, 40 s, 80 s, then 120 s each. `attempts` counts the incomplete ones so far, from 1. */
export const backoffMs = (config: HuntConfig, attempts: number): number =>
  Math.min(config.gitHuntBaseBackoffSecs * 2 ** (Math.max(attempts, 1) - 1), config.gitHuntMaxBackoffSecs) * 1_000;

export class HuntJob {
  urls: readonly HuntUrl[] = [];
  /** Incomplete attempts since the last fresh start. */
  attempts = 0;
  /** The next attempt; it only moves earlier, except when all that is left becomes soft. */
  dueMs: number | undefined;
  /** The moment it was last put down for; saves putting it down twice. */
  scheduledMs: number | undefined;
  /** URLs tried in the attempt that is going on. */
  attempt: Set<string> | undefined;
  /** An attempt was begun whose end, domain queues included, was not told yet. */
  isLooking = false;
  /** URLs of servers that serve something whose data is missing, and were not asked since that is known. */
  readonly promised = new Set<string>();
  readonly running = new Map<FetchId, RunningFetch>();
  /** Domains in whose queue it stands. */
  readonly queuedAt = new Set<string>();
  #lastEndMs: number | undefined;
  readonly #items = new Map<string, Item>();
  readonly #refusedBy = new Map<string, Set<Oid>>();
  /** By URL: what did not fit. */
  readonly #tooLarge = new Map<string, { readonly ids: readonly Oid[]; readonly bytes: number }>();

  constructor(
    readonly key: string,
    readonly kind: JobKind,
    readonly config: HuntConfig,
  ) {}

  get isEmpty(): boolean {
    return this.#items.size === 0 && this.running.size === 0;
  }

  /** Something hard is missing: it is in the queue. */
  get isQueued(): boolean {
    for (const item of this.#items.values()) if (!item.soft && item.missing.size > 0) return true;
    return false;
  }

  get lacksAnything(): boolean {
    for (const item of this.#items.values()) if (item.missing.size > 0) return true;
    return false;
  }

  /** One fetch at a time, until it has proved slow. */
  get isBusy(): boolean {
    for (const fetch of this.running.values()) if (!fetch.slow) return true;
    return false;
  }

  /** Answers whether this is a fresh start: a state that is new, or hard again. */
  put(item: WaitingItem, nowMs: number): boolean {
    const wasQueued = this.isQueued;
    const before = this.#items.get(item.id);
    const soft = item.soft || item.kind === "repair";
    this.#items.set(item.id, { soft, missing: new Set(item.ids), promised: before?.promised ?? new Set() });
    this.#restIfLeft(wasQueued, nowMs);
    const isNew = !before || before.missing.size === 0 || (before.soft && !soft);
    if (!isNew || item.ids.length === 0) return false;
    if (soft) {
      // Known from before a restart, or found by repair: one look soon, then hourly.
      this.wantAt(nowMs + this.config.gitHuntSyncDelayMs);
      return false;
    }
    const freshStart = item.kind === "state" || this.kind === "pull-request";
    // A stranger's pull request must not speed up, or reset, what the repository does for itself.
    if (freshStart || !wasQueued) {
      this.wantAt(
        nowMs + (item.source === "client" ? this.config.gitHuntDirectDelayMs : this.config.gitHuntSyncDelayMs),
      );
    }
    if (freshStart) {
      this.attempts = 0;
      this.#forgetAnswers();
    }
    return freshStart;
  }

  remove(id: string, nowMs: number): void {
    const wasQueued = this.isQueued;
    this.#items.delete(id);
    this.#restIfLeft(wasQueued, nowMs);
  }

  /** Counts ids that were missing and are not any more; a soft entry of which something came is worth a look. */
  take(ids: readonly Oid[], nowMs: number): number {
    const wasQueued = this.isQueued;
    const found = new Set<Oid>();
    let wakesSoft = false;
    for (const item of this.#items.values()) {
      const before = item.missing.size;
      for (const id of ids) if (item.missing.delete(id)) found.add(id);
      if (item.soft && item.missing.size > 0 && item.missing.size < before) wakesSoft = true;
    }
    this.#restIfLeft(wasQueued, nowMs);
    if (wakesSoft) this.wantAt(nowMs + this.config.gitHuntSyncDelayMs);
    return found.size;
  }

  setUrls(urls: readonly HuntUrl[], nowMs: number): void {
    const known = new Set(this.urls.map((target) => target.url));
    const gained = urls.some((target) => !known.has(target.url));
    this.urls = urls;
    // Hard entries are due within two minutes anyway; soft ones would wait an hour for a server that is new.
    if (gained && this.lacksAnything && !this.isQueued) this.wantAt(nowMs + this.config.gitHuntSyncDelayMs);
  }

  get itemIds(): Iterable<string> {
    return this.#items.keys();
  }

  /** Servers of these origins have the entry's data by their own promise. Answers whether there is one to ask. */
  promise(id: string, origins: ReadonlySet<string>): boolean {
    const item = this.#items.get(id);
    if (!item || item.missing.size === 0) return false;
    const fresh = this.urls.filter(({ url, origin }) => origins.has(origin) && !item.promised.has(url));
    for (const { url } of fresh) {
      item.promised.add(url);
      this.promised.add(url);
    }
    return fresh.length > 0;
  }

  /** A server did not keep its promise: that is an attempt like any other. */
  endPromised(nowMs: number): void {
    if (this.isQueued && !this.attempt) this.wantAt(nowMs + backoffMs(this.config, ++this.attempts));
  }

  wantAt(atMs: number): void {
    this.dueMs = Math.min(this.dueMs ?? atMs, atMs);
  }

  askNow(nowMs: number): void {
    if (!this.lacksAnything || this.attempt) return;
    this.#forgetAnswers();
    this.wantAt(nowMs);
  }

  beginAttempt(): void {
    this.dueMs = undefined;
    this.attempt = new Set();
    this.isLooking = true;
  }

  endAttempt(nowMs: number): void {
    this.attempt = undefined;
    this.#lastEndMs = nowMs;
    if (this.isQueued) this.wantAt(nowMs + backoffMs(this.config, ++this.attempts));
    else if (this.lacksAnything) this.wantAt(nowMs + this.config.gitHuntIntervalSecs * 1_000);
    else this.rest();
  }

  /** Nothing is missing: out of the queue, and a later entry starts afresh. */
  rest(): void {
    this.dueMs = undefined;
    this.attempts = 0;
    this.#forgetAnswers();
  }

  #forgetAnswers(): void {
    this.#refusedBy.clear();
    this.#tooLarge.clear();
  }

  /** What to ask this server for: ids it has not refused yet first, so that the rest gets its turn next time. */
  idsFor(url: string): Oid[] {
    const needed = new Set<Oid>();
    for (const item of this.#items.values()) for (const id of item.missing) needed.add(id);
    const refused = this.#refusedBy.get(url);
    if (!refused) return [...needed];
    const untold = [...needed].filter((id) => !refused.has(id));
    if (untold.length === 0) this.#refusedBy.delete(url);
    return [...untold, ...[...needed].filter((id) => refused.has(id))];
  }

  noteRefused(url: string, ids: readonly Oid[]): void {
    if (ids.length === 0) return;
    const refused = this.#refusedBy.get(url) ?? new Set();
    for (const id of ids) refused.add(id);
    this.#refusedBy.set(url, refused);
  }

  noteTooLarge({ target, ids }: RunningFetch, bytes: number): void {
    this.#tooLarge.set(target.url, { ids, bytes });
  }

  /** More ids than did not fit then do not fit now. */
  tooFewBytesFor(url: string, ids: readonly Oid[]): number {
    const known = this.#tooLarge.get(url);
    const asked = new Set(known && ids);
    return known?.ids.every((id) => asked.has(id)) ? known.bytes : 0;
  }

  isFetching(url: string): boolean {
    for (const fetch of this.running.values()) if (fetch.target.url === url) return true;
    return false;
  }

  /** The last hard entry went or became soft: what is left is looked for hourly. */
  #restIfLeft(wasQueued: boolean, nowMs: number): void {
    if (!wasQueued || this.isQueued) return;
    this.rest();
    if (this.lacksAnything) this.dueMs = (this.#lastEndMs ?? nowMs) + this.config.gitHuntIntervalSecs * 1_000;
  }
}

type Due =
  | { readonly type: "job"; readonly key: string }
  /** Servers that showed to have what a job lacks are to be asked. */
  | { readonly type: "promised"; readonly key: string }
  /** A fetch has run long enough for the next URL to start beside it. */
  | { readonly type: "slow"; readonly fetch: FetchId }
  /** A domain's rate window frees up. */
  | { readonly type: "domain"; readonly name: string };

export interface CoreState {
  readonly config: HuntConfig;
  readonly jobs: Map<string, HuntJob>;
  readonly due: DueTimes<Due>;
  readonly emit: Emit;
  nowMs: number;
}

interface Moment<T> {
  readonly atMs: number;
  readonly value: T;
}

/**
 * Moments; of equal ones the first added comes first. They are never removed early: the owner checks at the moment
 * whether it still means anything.
 */
export class DueTimes<T> {
  readonly #heap = new Heap<Moment<T> & { readonly order: number }>((a, b) => a.order < b.order);
  #added = 0;

  get size(): number {
    return this.#heap.size;
  }

  peek(): Moment<T> | undefined {
    return this.#heap.first;
  }

  add(atMs: number, value: T): void {
    this.#heap.add(atMs, { atMs, value, order: this.#added++ });
  }

  pop(): Moment<T> | undefined {
    return this.#heap.removeFirst();
  }
}

const maxEarly = 1_000;
/** More than the URLs of a repository and of a pull request together. */
const maxOrigins = 32;

/**
 * Which servers were seen to serve an event that waits here (event-sync.md "Evidence ends the wait"): such a server has
 * the git data by its own promise. Evidence may come before the event waits, so it is kept for a while either way.
 * Bounds: with what waits as much as waits (purgatory caps that), a few origins each; without, the newest events only.
 */
export class Evidence {
  readonly #origins = new Map<string, Set<string>>();
  readonly #jobs = new SetsByKey<string, string>();
  /** Events of which nothing waits, the oldest first. */
  readonly #early = new Set<string>();

  /** Answers the jobs that lack something for the event, if this is new. */
  note(event: EventId, origin: string): Iterable<string> {
    const origins = this.#origins.get(event) ?? new Set();
    if (origins.has(origin) || origins.size === maxOrigins) return [];
    this.#origins.set(event, origins.add(origin));
    const jobs = this.#jobs.get(event);
    if (!jobs) this.#keepEarly(event);
    return jobs ?? [];
  }

  /** Origins that serve the event. */
  of(event: string): ReadonlySet<string> | undefined {
    return this.#origins.get(event);
  }

  waits(event: string, job: string): void {
    this.#early.delete(event);
    this.#jobs.add(event, job);
  }

  left(event: string, job: string): void {
    if (!this.#jobs.has(event)) return;
    this.#jobs.remove(event, job);
    if (!this.#jobs.has(event)) this.#origins.delete(event);
  }

  #keepEarly(event: EventId): void {
    this.#early.add(event);
    if (this.#early.size <= maxEarly) return;
    for (const oldest of this.#early) {
      this.#early.delete(oldest);
      this.#origins.delete(oldest);
      return;
    }
  }
}
