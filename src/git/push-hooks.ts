// What a push is given, what it asks of the rest of the server, and what it answers. No behaviour.

import type { RepositoryAddress } from "./address.js";
import type {
  CommandVerdict,
  JournalEntry,
  KeptAside,
  PackBudgets,
  PushAuthority,
  PushCommand,
  PushOutcome,
  PushRefusalCode,
} from "./types.js";

/** The rest of the server, as seen by a push. */
export interface PushHooks {
  /** Who may push what, now. Asked twice. */
  readonly authority: (
    address: RepositoryAddress,
    commands: readonly PushCommand[],
    context: { readonly ip: string },
  ) => Promise<PushAuthority>;
  /** A push to it is at work until the returned function is called: it must not be taken away meanwhile. */
  readonly begins?: (address: RepositoryAddress) => () => void;
  /**
   * Resolves when the wanted values are on disk; a throw stops the push. False: nothing was written, because what the
   * push was decided by is gone.
   */
  readonly journal: (entry: JournalEntry) => Promise<boolean>;
  /** Data was put aside for events nobody knows yet. Resolves when that is on disk; a throw stops the push. */
  readonly keptAside?: (kept: KeptAside) => Promise<void>;
  /** What was journaled was not written after all. */
  readonly abandoned?: (entry: JournalEntry) => Promise<void>;
  /** Runs to its end before the pusher gets the report; lines for the pusher's terminal. */
  readonly released: (outcome: PushOutcome) => Promise<readonly string[]>;
}

export interface PushRequest {
  readonly address: RepositoryAddress;
  readonly readOnlyReason: string | undefined;
  readonly createOnPush: boolean;
  readonly commands: readonly PushCommand[];
  readonly atomic: boolean;
  readonly ip: string;
  readonly budgets: PackBudgets;
  /** What was read of the pack together with the commands. */
  readonly first: Buffer;
  readonly next: () => Promise<Buffer | undefined>;
  /**
   * A place among the pushes that are taken in, asked for when it is known that this one may be. `trusted`: it moves
   * branches or tags as a maintainer's state says. Undefined: there is none.
   */
  readonly turn: (trusted: boolean) => Promise<(() => void) | undefined>;
  readonly wallClockMs: number;
  readonly signal: AbortSignal;
}

export interface PushResult {
  readonly unpack: string;
  readonly code: PushRefusalCode | "ok";
  readonly verdicts: readonly CommandVerdict[];
  readonly messages: readonly string[];
  /** `released` failed after the refs were written: a fault to be logged; the push itself stands. */
  readonly fault?: unknown;
}
