// What the verbs of one connection share: the parts of the relay, the way out, who is on the other side, how many queries
// run at a time, and the records that reconciliations (NIP-77) may hold.

import type { Members } from "../access/members.js";
import type { HeldBytes } from "../base/budget/bytes.js";
import type { Clock } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import type { Intake } from "../intake/intake.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/event.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { Verifier } from "../nostr/verify/pool.js";
import { type Store, StoreClosedError } from "../store/port.js";
import type { RelayLimits } from "./limits.js";
import type { Live } from "./live.js";
import type { RelayMetrics } from "./metrics.js";
import type { Outbox } from "./outbox.js";
import type { RelayBudgets, Visit } from "./visitors.js";

export interface RelayParts {
  readonly store: Store;
  readonly intake: Intake;
  readonly verifier: Verifier;
  readonly clock: Clock;
  /** Read at each use: limits change on reload. */
  readonly limits: RelayLimits;
  /** The names this service answers to; an AUTH event must name one of them. */
  readonly serviceNames: readonly ServiceName[];
  /** Only members may use a private relay. */
  readonly members: Members;
  readonly metrics: RelayMetrics;
  /** Unguessable text, new at each call. */
  readonly newChallenge: () => string;
  /** An error nobody expected. The client has been answered; what becomes of the process is decided above. */
  readonly onFault: (error: unknown) => void;
}

/** What a connection is given: the relay around it, who is at the other end, the way back. */
export interface Place {
  readonly parts: RelayParts;
  readonly live: Live;
  readonly records: RecordBudget;
  readonly budgets: RelayBudgets;
  /** Its place in the budget of what comes in. */
  readonly incoming: HeldBytes;
  readonly ip: string;
  readonly visit: Visit;
  readonly outbox: Outbox;
}

export const notAMember = refuse("not-allowed", "this key is not a member of this private service: ask its operator");

const nobody: ReadonlySet<Pubkey> = new Set();

/** Most are idle, or listen and do nothing else: what only some need is made when it is needed. */
export class Connection {
  #end: AbortController | undefined;
  #queries: ConcurrencyLimit | undefined;
  #authenticated: Set<Pubkey> | undefined;
  #isClosing = false;

  constructor(readonly place: Place) {}

  get queries(): ConcurrencyLimit {
    this.#queries ??= new ConcurrencyLimit(this.place.parts.limits.maxParallelQueries);
    return this.#queries;
  }

  /** Aborts when the connection ends. */
  get closed(): AbortSignal {
    return this.#ending().signal;
  }

  /** New events are refused. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Keys that whoever is on it has shown to hold. */
  get authenticated(): ReadonlySet<Pubkey> {
    return this.#authenticated ?? nobody;
  }

  authenticateAs(key: Pubkey): void {
    this.#authenticated ??= new Set();
    this.#authenticated.add(key);
  }

  /** Why whoever is on it may not use the relay (GRASP-08); undefined on a public one, and for members. */
  turnedAway(): Refusal | undefined {
    const { members } = this.place.parts;
    if (!members.isPrivate) return undefined;
    const keys = [...this.authenticated];
    if (keys.length === 0) return refuse("auth-required", "this relay is private: authenticate first");
    return keys.some((key) => members.has(key)) ? undefined : notAMember;
  }

  /** Turns an exception into what the client is told. */
  failed(error: unknown): Refusal {
    if (error instanceof StoreClosedError)
      return refuse("shutting-down", "the server is shutting down: try again later");
    this.place.parts.onFault(error);
    return refuse("internal", "the server failed at this: it was logged");
  }

  beginToClose(): void {
    this.#isClosing = true;
  }

  end(): void {
    this.#ending().abort(noLongerWanted);
  }

  #ending(): AbortController {
    this.#end ??= sharedAbort();
    return this.#end;
  }
}

/** The reason of every abort here. One for all: the default one is made anew with a stack each time, which a client can ask for thousands of times a second. */
export const noLongerWanted = new Error("the client no longer wants this");

/** Lets a few through at a time; the rest wait in order. What waits is bounded by whoever asks (open subscriptions). */
class ConcurrencyLimit {
  #free: number;
  #waiting: (() => void)[] = [];

  constructor(width: number) {
    this.#free = width;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  /** For work that may be done at once: undefined then. */
  run(work: () => Promise<void> | undefined): Promise<void> | undefined {
    if (this.#free === 0) return this.pass(async () => work());
    this.#free--;
    let running: Promise<void> | undefined;
    try {
      running = work();
    } finally {
      if (!running) this.#leave();
    }
    return running?.finally(() => this.#leave());
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}

/** Records held by open reconciliations of all connections. */
export class RecordBudget {
  #held = 0;

  take(records: number, max: number): boolean {
    if (this.#held + records > max) return false;
    this.#held += records;
    return true;
  }

  give(records: number): void {
    this.#held -= records;
  }

  get held(): number {
    return this.#held;
  }
}
