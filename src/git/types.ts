// The git room's public words: what other rooms hand in and get back. No behaviour, no Nostr policy: the room asks its
// caller who may push (PushAuthority) and tells it what was written.

import type { EventId, Oid } from "../nostr/ids.js";
import type { RefName } from "../nostr/ref-name.js";
import type { RepositoryAddress } from "./address.js";

/** One `old new ref` line of a push. `undefined` is git's all-zero id: the ref does not exist (old), delete it (new). */
export interface PushCommand {
  readonly ref: RefName;
  readonly old: Oid | undefined;
  readonly new: Oid | undefined;
}

/** A wanted value of one ref; `undefined` deletes it. */
export interface RefUpdate {
  readonly ref: RefName;
  readonly to: Oid | undefined;
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

/** What a finished push did. Handed to `released` after the refs are committed, before the report is sent. */
export interface PushOutcome {
  readonly address: RepositoryAddress;
  readonly decision: PushDecision;
  /** Heads, tags and known `refs/nostr/*` that were written. */
  readonly updates: readonly RefUpdate[];
  /** Unclaimed `refs/nostr/<id>` that were kept apart (see Repository.unclaimed). */
  readonly placeholders: readonly UnclaimedData[];
  readonly packBytes: number;
  readonly ip: string;
}

export type KeptAside = Pick<PushOutcome, "address" | "ip" | "placeholders">;

/** Durably recorded between prepare and commit, replayed by the caller at start. */
export interface JournalEntry {
  readonly address: RepositoryAddress;
  readonly candidate: StateStamp | undefined;
  readonly updates: readonly RefUpdate[];
}

/** The data of a git-first push whose event is not known yet: kept outside the repository's objects. */
export interface UnclaimedData {
  readonly eventId: EventId;
  /** What was pushed last. */
  readonly tip: Oid;
  /** All pushes together. */
  readonly bytes: number;
  readonly sinceMs: number;
}

export interface RefValue {
  readonly oid: Oid;
  /** For an annotated tag: the object it finally points at. */
  readonly peeled: Oid | undefined;
}

/** A repository's refs at one moment, sorted by name (by bytes, as git sorts). Never changed in place. */
export interface RefTable {
  readonly refs: ReadonlyMap<RefName, RefValue>;
  /** The branch HEAD names, whether or not it exists. */
  readonly head: RefName;
  /** Grows with each change; part of the key of shared fetch answers. */
  readonly generation: number;
}

export interface PackBudgets {
  readonly maxPackBytes: number;
  readonly maxObjects: number;
  readonly maxObjectBytes: number;
  /** What git may use for data while it checks the pack; a little more for each object. */
  readonly gitMemoryBytes: number;
}

export type Refused = {
  readonly ok: false;
  readonly code: PushRefusalCode;
  readonly reason: string;
};

export type RefUpdateResult =
  | { readonly ok: true; readonly changed: readonly RefUpdate[] }
  | { readonly ok: false; readonly code: "vetoed" | "conflict"; readonly reason: string };

export interface UpdateRefsOptions {
  /**
   * Called while the refs are locked, before anything is written. False ends the transaction with nothing changed.
   * Here the caller decides again, journals, and moves a quarantine's packs into place. Must not update refs itself.
   */
  readonly beforeCommit?: () => Promise<boolean>;
  /** A quarantine whose objects the transaction may see before they are moved into place. */
  readonly quarantine?: Quarantine;
  /** Clients go on seeing the refs from before until `publish`: for changes that an event must accompany. */
  readonly withhold?: boolean;
}

/** Objects on trial: seen by nobody until `migrate`. */
export interface Quarantine {
  readonly directory: string;
  /** Bytes of pack received so far. */
  readonly packBytes: number;
  /** Which of these are not here, or do not have everything they reach, in the repository and this quarantine together. */
  missingObjects(oids: readonly Oid[]): Promise<ReadonlySet<Oid>>;
  /** Moves the packs into the repository, durably. */
  migrate(): Promise<void>;
  /** Removes everything; safe to call after migrate. */
  drop(): Promise<void>;
}

export type ObjectType = "commit" | "tree" | "blob" | "tag";

export interface HousekeepingOptions {
  /** Also sort out unreachable objects, and drop those older than the grace. */
  readonly cruft?: boolean;
  readonly graceDays?: number;
  /** Goes on beside pushes. Not when unreachable objects are dropped: a push may rest on one. */
  readonly insists?: boolean;
  readonly signal?: AbortSignal;
}

/** busy: others work there, or housekeeping does already. interrupted: it gave way, or was told to stop. */
export type HousekeepingOutcome = "done" | "busy" | "interrupted";

/** What a look at the directories tells, without starting git. */
export interface PackFacts {
  /** Ordinary packs; one of garbage is not counted. */
  readonly packs: number;
  /** All files beside the packs included. */
  readonly bytes: number;
  readonly hasBitmap: boolean;
  readonly hasGarbagePack: boolean;
  /** Counted up to 1,000. */
  readonly looseRefs: number;
}

/** One bare repository. Obtained from Repositories.open; holds no descriptor and needs no close. */
export interface Repository {
  readonly address: RepositoryAddress;
  readonly directory: string;
  /** As they are: what decisions are made on. */
  refs(): Promise<RefTable>;
  /** As clients see them: without what is withheld. */
  shownRefs(): Promise<RefTable>;
  /** What can be fetched: under `/prs/` also the data of events nobody knows yet. */
  fetchableRefs(): Promise<RefTable>;
  /** Shows what was withheld, at once. */
  publish(): void;
  /** Which of these are not here with everything they reach. `deep`: do not trust what existing refs reach (repair). */
  missingObjects(oids: readonly Oid[], options?: { readonly deep?: boolean }): Promise<ReadonlySet<Oid>>;
  objectTypes(oids: readonly Oid[]): Promise<ReadonlyMap<Oid, ObjectType>>;
  /** Two-phase; values that are already right are left out. The only way refs change. */
  updateRefs(updates: readonly RefUpdate[], options?: UpdateRefsOptions): Promise<RefUpdateResult>;
  /** HEAD moves only to a branch that exists; false otherwise. */
  setHead(branch: RefName, options?: { readonly withhold?: boolean }): Promise<boolean>;
  /** fsyncs refs and HEAD: after this a journal entry for them may go. */
  syncRefs(): Promise<void>;
  /** Copies these and all they reach that is not here, as one pack. False when the other lacks some of it. */
  copyObjectsFrom(other: Repository, oids: readonly Oid[]): Promise<boolean>;
  quarantine(): Promise<Quarantine>;
  unclaimed(): Promise<readonly UnclaimedData[]>;
  /** Keeps what the tip reaches apart as the data of an unknown event. */
  keepUnclaimed(quarantine: Quarantine, eventId: EventId, tip: Oid): Promise<UnclaimedData>;
  /**
   * The event came: if its tip, with all it reaches, is among the data, that much moves into the repository; whatever
   * else there is is deleted. False when there is nothing or all was deleted.
   */
  claim(eventId: EventId, tip: Oid): Promise<boolean>;
  /** Deletes the data of an unclaimed push, objects included. */
  dropUnclaimed(eventId: EventId): Promise<void>;
  sizeBytes(): Promise<number>;
  /** What is wrong with it, in sentences; empty when sound. */
  fsck(): Promise<readonly string[]>;
  packFacts(): Promise<PackFacts>;
  /** Repacks in the background; gives way to whoever works there. */
  housekeep(options?: HousekeepingOptions): Promise<HousekeepingOutcome>;
  /** Bytes on disk of what refs below `prefix` reach and branches and tags do not; undefined when git cannot tell. */
  bytesOnlyOf(prefix: "refs/nostr/"): Promise<number | undefined>;
}

/** All repositories as they were at one moment, put as hard links below `folder`. */
export interface StagedRepositories {
  readonly folder: string;
  stageAll(progress: (done: number) => void, signal: AbortSignal): Promise<number>;
}

export interface RepositoryStore {
  /** Bare, HEAD at refs/heads/master, our config; durable when it resolves. Existing ones are left as they are. */
  create(address: RepositoryAddress): Promise<Repository>;
  exists(address: RepositoryAddress): Promise<boolean>;
  open(address: RepositoryAddress): Repository;
  /** Gone at once (renamed away), then removed. `isUnwanted` is asked when nobody can make it; false: it stays. */
  delete(address: RepositoryAddress, isUnwanted?: () => Promise<boolean>): Promise<boolean>;
  /** Deletes one without refs and without unclaimed data, unless it is in use. Whether it did. */
  removeIfEmpty(address: RepositoryAddress): Promise<boolean>;
  /** While the work runs, housekeeping and `removeIfEmpty` stay away. */
  whileUsed<T>(address: RepositoryAddress, work: () => Promise<T>): Promise<T>;
  /** Directories found on disk with the identifier each one records. */
  list(): AsyncIterable<{ readonly npubOrOwner: string; readonly identifier: string; readonly area: "main" | "prs" }>;
  /**
   * From this call on the refs of this moment are remembered, until `endSnapshot`. Undefined: another snapshot is being
   * taken. The caller removes the folder when it needs it no longer; the next start removes one that was left.
   */
  beginSnapshot(): StagedRepositories | undefined;
  endSnapshot(): void;
  /** Runs alone among all work that names one of these repositories; taken in a fixed order, so it cannot deadlock. */
  withLocks<T>(addresses: readonly RepositoryAddress[], work: () => Promise<T>): Promise<T>;
  /** Called after packs or refs of a repository changed. The answer stops it. */
  onChange(listener: (address: RepositoryAddress) => void): () => void;
}
