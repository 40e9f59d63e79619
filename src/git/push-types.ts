// Everything that flows in a push: its commands, what the rest of the server says about them (PushAuthority), what is
// decided, and what was written. No behaviour, no Nostr policy.

import type { Config } from "../config/config.js";
import type { EventId } from "../nostr/event.js";
import type { ObjectFormat, Oid, RefName } from "../nostr/nip34.js";
import type { RepositoryAddress } from "./address.js";
import type { Placed, UnclaimedData } from "./quarantine.js";
import type { RefUpdate } from "./repository-refs.js";

/** One `old new ref` line of a push. `undefined` is git's all-zero id: the ref does not exist (old), delete it (new). */
export interface PushCommand {
  readonly ref: RefName;
  readonly old: Oid | undefined;
  readonly new: Oid | undefined;
}

/** NIP-01's order: higher `created_at` is newer, the lower id within a second. */
export interface StateStamp {
  readonly id: EventId;
  readonly created_at: number;
}

/** A state event by a member of the owner's maintainer set, served or waiting. */
export interface CandidateState extends StateStamp {
  /** `refs/heads/*` and `refs/tags/*` it names, well-formed ones only. */
  readonly refs: ReadonlyMap<RefName, Oid>;
  /** Released here (also as partial) and not succeeded since. */
  readonly governs: boolean;
}

/** What is known of the event a `refs/nostr/<id>` is named after. */
export type NostrRefEvent =
  /** `heldAt`: what was pushed first holds the ref (under `/prs/`, where it is shown). */
  | { readonly known: false; readonly heldAt?: Oid }
  | {
      readonly known: true;
      /** Its `c`; undefined when that is no object id. */
      readonly tip: Oid | undefined;
      readonly addressesThisRepository: boolean;
    };

/** May data for an unknown event (a placeholder) come in now, and how much of it. */
export type UnclaimedAllowance =
  | { readonly ok: true; readonly maxBytes: number }
  | { readonly ok: false; readonly reason: string };

/** Everything a push decision needs from outside the git room, as of one moment. */
export interface PushAuthority {
  /** Set: nothing may be pushed here, and why (archived, leaving, disk full). */
  readonly readOnlyReason?: string;
  /** Only `refs/nostr/*` may be pushed here (`/prs/`). */
  readonly nostrRefsOnly?: boolean;
  /** NGIT_PUSH_STRICT. */
  readonly strict: boolean;
  /** The newest state that ever governed or was pushed under; older candidates are ignored. */
  readonly mark: StateStamp | undefined;
  /** In any order; those without refs or older than the mark are ignored by the decision. */
  readonly candidates: readonly CandidateState[];
  /** By event id, for each `refs/nostr/<id>` among the commands; a missing entry is an unknown event. */
  readonly nostrEvents: ReadonlyMap<EventId, NostrRefEvent>;
  readonly unclaimed: UnclaimedAllowance;
  /** What is left of the owner's, repository's or author's quota, when less than a push's own budget. */
  readonly quota?: { readonly maxBytes: number; readonly reason: string };
}

/** One code for the user, the log and the metric (docs/reference/refusals.md lists them). */
export type PushRefusalCode =
  | "read-only"
  | "object-format"
  | "ref-not-allowed"
  | "no-state"
  | "state-differs"
  | "superseded"
  | "listed-ref"
  | "not-complete"
  | "stale-old-value"
  | "strict"
  | "atomic"
  | "nostr-other-tip"
  | "nostr-other-repository"
  | "nostr-delete"
  | "unclaimed-budget"
  | "bad-request"
  | "too-many-commands"
  | "too-large"
  | "too-many-objects"
  | "object-too-large"
  | "bad-objects"
  | "missing-objects"
  | "not-a-commit"
  | "timeout"
  | "internal";

export type CommandVerdict =
  | { readonly command: PushCommand; readonly ok: true; readonly effect: "move" | "none" | "placeholder" }
  | {
      readonly command: PushCommand;
      readonly ok: false;
      readonly code: PushRefusalCode;
      /** One human sentence that says what would make it work; never "not found" or "404". */
      readonly reason: string;
    };

export interface PushDecision {
  /** One for each command, in the client's order. */
  readonly verdicts: readonly CommandVerdict[];
  /** The state the heads and tags were moved under; undefined when none of them moves. */
  readonly candidate: StateStamp | undefined;
  /** Whether any ref changes, or a placeholder is written. */
  readonly moves: boolean;
}

/** What a push writes. */
export interface PushOutcome {
  readonly address: RepositoryAddress;
  readonly decision: PushDecision;
  /** Heads, tags and known `refs/nostr/*`. */
  readonly updates: readonly RefUpdate[];
  /** What these updates name, in place. */
  readonly placed?: Placed | undefined;
  /** Unclaimed `refs/nostr/<id>` that were kept apart (see GitRepository.unclaimed). */
  readonly placeholders: readonly UnclaimedData[];
  readonly packBytes: number;
  readonly ip: string;
}

/** What one pack may be, and what git may use for data while it checks it (a little more for each object). */
export type PackBudgets = Pick<Config, "pushMaxBytes" | "pushMaxObjects" | "maxObjectBytes" | "gitMemoryBytes">;

export type Refused = {
  readonly ok: false;
  readonly code: PushRefusalCode;
  readonly reason: string;
};

/** One push, as the rest of the server sees it. Begun before its first decision. */
export interface PushSession {
  /** Who may push what, now. Asked twice. */
  authority(commands: readonly PushCommand[]): Promise<PushAuthority>;
  /** Runs alone among all work on the repositories that this push may change, which are known before it is written. */
  locked<T>(work: () => Promise<T>): Promise<T>;
  /** Data was put aside for events nobody knows yet. Resolves when that is on disk; a throw stops the push. */
  keepAside(placeholders: readonly UnclaimedData[]): Promise<void>;
  /** What was put aside since `keepAside` goes again: the push is refused. */
  abandon(): Promise<void>;
  /**
   * Under the locks, with all objects in place: writes the refs and releases what waited for them, in one transaction. False:
   * nothing was written, because what the push was decided by is gone.
   */
  release(outcome: PushOutcome): Promise<boolean>;
  /** Without the locks: what follows from the release, before the pusher gets the report. */
  follow(outcome: PushOutcome): Promise<Followed>;
  /** Until then the repository is not taken away. Under `/prs/` one that is empty then goes. */
  end(): Promise<void>;
}

export interface Followed {
  /** Lines for the pusher's terminal. */
  readonly messages: readonly string[];
  /** Something after the refs could not be done yet: to be logged; the push itself stands. */
  readonly fault?: unknown;
}

export interface PushSessions {
  beginPush(address: RepositoryAddress, ip: string): PushSession;
}

export interface PushRequest {
  readonly address: RepositoryAddress;
  readonly readOnlyReason: string | undefined;
  readonly createOnPush: boolean;
  readonly commands: readonly PushCommand[];
  /** Of the commands' ids. */
  readonly format: ObjectFormat;
  readonly atomic: boolean;
  readonly ip: string;
  readonly budgets: PackBudgets;
  /** What was read of the pack together with the commands. */
  readonly first: Buffer;
  readonly next: () => Promise<Buffer | undefined>;
  /**
   * Asks for a place among the pushes whose packs are read at the same time, once it is decided that this push is allowed.
   * `trusted`: the push moves branches or tags as a maintainer's state says. Undefined: no place is free.
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
  /** To be logged: something failed after the refs were written, and the push itself stands; or why they could not be. */
  readonly fault?: unknown;
}
