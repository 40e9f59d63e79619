// What the core keeps between two inputs beside the jobs themselves: the moments to wake up at, which servers were seen
// to serve what waits, and whether everything was hunted once since the start.

import { Heap } from "../../base/heap.js";
import type { EventId } from "../../nostr/ids.js";
import type { HuntConfig } from "./config.js";
import type { HuntJob } from "./job.js";
import type { Emit, FetchId } from "./messages.js";

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

/**
 * Tells when everything that waited at a server start has been hunted once; until then nothing expires (purgatory.md).
 */
export class FirstRound {
  readonly #attempted: Map<string, boolean>;

  constructor(keys: Iterable<string>) {
    this.#attempted = new Map([...keys].map((key) => [key, false]));
  }

  get isOver(): boolean {
    return this.#attempted.size === 0;
  }

  attempted(key: string): void {
    if (this.#attempted.has(key)) this.#attempted.set(key, true);
  }

  /** `isQuiet`: no attempt, no fetch and no domain queue has it any more. */
  settle(key: string, lacksAnything: boolean, isQuiet: boolean): void {
    if (!lacksAnything || (isQuiet && this.#attempted.get(key))) this.#attempted.delete(key);
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
  readonly #jobs = new Map<string, Set<string>>();
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
    this.#jobs.set(event, (this.#jobs.get(event) ?? new Set()).add(job));
  }

  left(event: string, job: string): void {
    const jobs = this.#jobs.get(event);
    jobs?.delete(job);
    if (jobs?.size !== 0) return;
    this.#jobs.delete(event);
    this.#origins.delete(event);
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
