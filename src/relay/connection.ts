// What the verbs of one connection share: the parts of the relay, the way out, and who is on the other side.

import { ByteBudget, type HeldBytes } from "../base/budget/bytes.js";
import type { Clock } from "../base/clock.js";
import type { Intake } from "../intake/intake.js";
import type { ServiceName } from "../net/url.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { Verifier } from "../nostr/verify/pool.js";
import { type Store, StoreClosedError } from "../store/port.js";
import type { Gate } from "./gate.js";
import type { RelayLimits } from "./limits.js";
import type { Live } from "./live.js";
import type { RelayMetrics } from "./metrics.js";
import type { NegentropyFactory, RecordBudget } from "./negentropy-session.js";
import type { Outbox } from "./outbox.js";
import type { Visit } from "./visitors.js";

export interface RelayParts {
  readonly store: Store;
  readonly intake: Intake;
  readonly verifier: Verifier;
  readonly negentropy: NegentropyFactory;
  readonly clock: Clock;
  /** Read at each use: limits change on reload. */
  readonly limits: () => RelayLimits;
  /** The names this service answers to; an AUTH event must name one of them. */
  readonly serviceNames: readonly ServiceName[];
  readonly metrics: RelayMetrics;
  /** Unguessable text, new at each call. */
  readonly newChallenge: () => string;
  /** An error nobody expected. The client has been answered; what becomes of the process is decided above. */
  readonly onFault: (error: unknown) => void;
}

/** What all connections together may make us hold (threats.md rows 36, 38 and 48). */
export interface RelayBudgets {
  readonly outgoing: ByteBudget;
  readonly incoming: ByteBudget;
  readonly filters: ByteBudget;
}

export const relayBudgets = (limits: () => RelayLimits): RelayBudgets => ({
  outgoing: new ByteBudget(() => limits().outgoing),
  incoming: new ByteBudget(() => limits().incoming),
  filters: new ByteBudget(() => limits().filters),
});

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

export interface Connection extends Place {
  readonly queries: Gate;
  /** Aborts when the connection ends. */
  readonly closed: AbortSignal;
  readonly isClosing: boolean;
  /** Turns an exception into what the client is told. */
  failed(error: unknown): Refusal;
}

/** The reason of every abort here. One for all: the default one is made anew with a stack each time, which a client can ask for thousands of times a second. */
export const noLongerWanted = new Error("the client no longer wants this");

export function failureOf(error: unknown, onFault: (error: unknown) => void): Refusal {
  if (error instanceof StoreClosedError) return refuse("shutting-down", "the server is shutting down: try again later");
  onFault(error);
  return refuse("internal", "the server failed at this: it was logged");
}
