// The store's contract, in words. Implementations: memory/, lmdb/, and postgres/, where several machines share one order.
// One contract suite (testing/contract.ts) runs over all of them. The store knows Nostr's rules of replacement,
// deletion and expiration; it knows no policy: who may put what is decided above it.
//
// Promises every implementation keeps:
//  1. `transact` resolves only after everything its work wrote is on disk (memory: in the map), all of it or nothing.
//  2. What a transaction wrote is visible to every reader before `transact` resolves, and not before it is durable.
//  3. Transactions are serial: a work sees all earlier ones and nothing of later ones. Many works queued at the same
//     time share one commit (group commit). A work that throws loses only its own writes; a commit that fails because
//     of one work's data is repeated without it.
//  4. Every stored event gets a sequence number; numbers only grow. Removals get numbers of their own. The feed
//     delivers both in order, from any number on, without gap or repetition; removals that are older than a day, or
//     than the process, may be forgotten once all who follow the feed have passed them.
//  5. Queries answer in NIP-01 order (newest first, lower id first within a second), each event once, byte for byte
//     the text that was put. An event that is replaced, deleted, vanished or expired is never answered.
//  6. When the disk is full, writes are refused with StoreFullError, reads go on, and writes work again when there
//     is space, without a restart.
//  7. What rules keep in memory follows the commits of other machines before the next work runs.
// A work must be repeatable: it may be run again when a commit is retried. Works are serial: a work that waits for
// another `transact` waits forever.

import type { Address, EventId, Pubkey, VerifiedEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { TimedIds } from "../nostr/negentropy/records.js";

/** A position in the feed: 1 is the first change ever, 0 is "before everything". */
export type Sequence = number;

export interface StoredEvent {
  readonly seq: Sequence;
  readonly event: VerifiedEvent;
}

/**
 * An event as a query answers it. `json` is the UTF-8 text to send, untouched;
 * `event` is parsed from it only when somebody reads it.
 */
export interface StoredRow {
  readonly seq: Sequence;
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly kind: number;
  readonly created_at: number;
  readonly json: Buffer;
  /** The same as it lies here, a string in memory or bytes from the disk: nothing is made of it. */
  readonly text: Buffer | string;
  /** About how many bytes `json` has, without making it. */
  readonly size: number;
  readonly event: VerifiedEvent;
}

export type RemovalCause = "replaced" | "deletion" | "vanish" | "expiration" | "ban" | "unhosted" | "operator";

export type FeedEntry =
  | { readonly seq: Sequence; readonly type: "stored"; readonly event: VerifiedEvent }
  | {
      readonly seq: Sequence;
      readonly type: "removed";
      readonly id: EventId;
      readonly pubkey: Pubkey;
      readonly kind: number;
      /** `kind:pubkey:identifier` when the event had an address. */
      readonly address: string | undefined;
      readonly cause: RemovalCause;
    };

/** Who reads pages makes room for the next one: a promise is waited for. */
export type BeforePage = () => Promise<void> | undefined;

export interface QueryOptions {
  /** At most this many events in all (after each filter's own `limit`). */
  readonly limit?: number;
  /** Only events with a sequence number up to this one: a REQ's dividing line between stored and live. */
  readonly upTo?: Sequence;
  /** Rows a page; the store gives other work a turn between pages. */
  readonly pageRows?: number;
  /** Rows are valid only until the next page is asked for: for a reader who copies them, whose answers may be large. */
  readonly passingRows?: boolean;
  /** Waited for before each page is read, if it answers a promise. No row is held meanwhile. */
  readonly beforePage?: BeforePage;
  readonly signal?: StopSign;
}

/** What a query looks at between its steps. */
export type StopSign = Pick<AbortSignal, "throwIfAborted">;

/** Named rows beside the events, written in the same transactions. Values are JSON. Keys sort by UTF-8 bytes, up to 1,000 bytes. */
export type TableName =
  | "purgatory"
  | "remembered"
  | "decisions"
  | "catalogue"
  | "journal"
  | "lists"
  | "bans"
  | "naughty"
  | "audit"
  | "meta"
  | "refs"
  | "aligned"
  | "tokens"
  | "lfs"
  | "packs";

/**
 * Rows that speak of this machine alone: which versions its git files have, when they were tidied, how far repair has come,
 * how busy it was. Machines that share a log do not share them.
 */
export const isLocalRow = (table: string, key: string): boolean =>
  table === "aligned" || (table === "meta" && /^(housekeeping:|hour:|repair:after$|ready$)/.test(key));

export interface RowRange {
  /** Only keys that begin with this. */
  readonly prefix?: string;
  /** Only keys after this one, in the order of reading (for paging). */
  readonly after?: string;
  readonly limit?: number;
  readonly reverse?: boolean;
}

export interface TableReader {
  row<T>(table: TableName, key: string): Promise<T | undefined>;
  rows<T>(table: TableName, range?: RowRange): AsyncIterable<readonly [key: string, value: T]>;
}

export interface Reader extends TableReader {
  /** The event with that id, if it is stored and has not expired. */
  event(id: EventId): Promise<StoredEvent | undefined>;
  has(id: EventId): Promise<boolean>;
  /** The current version at an address (replaceable and addressable kinds). */
  latest(address: Address): Promise<StoredEvent | undefined>;
  /** Pages of events in NIP-01 order over all filters together, each event once. `search` and `limit` are obeyed. */
  query(filters: readonly Filter[], options?: QueryOptions): AsyncIterable<readonly StoredRow[]>;
  count(filters: readonly Filter[], options?: Pick<QueryOptions, "signal">): Promise<number>;
  /**
   * Whether a deletion (by id, by address up to its time) or a vanish request of **its own author** covers this
   * event, stored or not. The store refuses to put such an event; admission asks to tell the reason.
   */
  deletionOf(event: VerifiedEvent): Promise<EventId | undefined>;
}

export type PutResult =
  | { readonly stored: true; readonly seq: Sequence; readonly replaced: VerifiedEvent | undefined }
  | { readonly stored: false; readonly reason: "duplicate" | "older" | "deleted" | "expired" };

/** A reader that sees its own writes, and the only way to write. */
export interface Transaction extends Reader {
  /**
   * Stores an event under NIP-01's rules: an older version at its address is replaced, a newer one makes this one
   * `older`. A kind 5 also removes what it targets of its author's and binds what comes later; a kind 62 all of its
   * author's events up to its time. Whether a deletion is wanted here at all is for the caller to decide.
   * Removals it causes come before it in the feed; of a request to vanish only the first: what is left is hidden from
   * every reader at once and removed in later commits. What a request binds stays bound when the request is removed.
   */
  put(event: VerifiedEvent): Promise<PutResult>;
  /** Removes one event without a trace that would refuse it later. */
  remove(id: EventId, cause: RemovalCause): Promise<boolean>;
  setRow<T>(table: TableName, key: string, value: T): void;
  deleteRow(table: TableName, key: string): void;
  /** Hands an ephemeral event to everybody who listens now, on other machines too. It has no number and is not kept. */
  pass(event: VerifiedEvent): void;
}

/** As whose work something is done, where several machines share the store; nothing: any of them may do it. */
export interface LedBy {
  /** It is the work of the leader of that epoch: it fails if another machine leads by now. */
  readonly epoch?: number;
}

export interface TransactOptions extends LedBy {
  /** It writes only rows that `isLocalRow` names, so that it needs no other machine. Writing anything else fails. */
  readonly isLocal?: boolean;
  /** Nobody waits for it: it rides on the next commit. Only a shared log makes it wait, and never longer than five seconds. */
  readonly mayWait?: boolean;
}

/** What one commit changed. */
export interface Commit {
  readonly entries: readonly FeedEntry[];
  /** Keys of the rows it wrote or deleted in a table. */
  changedKeys(table: TableName): Iterable<string>;
  /** Ephemeral events that it hands on. */
  readonly passing: readonly VerifiedEvent[];
  /** Another machine made it: nobody here knows of it yet. */
  readonly isForeign: boolean;
}

export interface FeedSubscription {
  /** Entries in order; ends when the signal aborts or the store closes. Reads from disk when it falls behind. */
  [Symbol.asyncIterator](): AsyncIterator<readonly FeedEntry[]>;
}

export interface Store extends Reader {
  /** Other machines write into the same order. */
  readonly isShared: boolean;
  transact<T>(work: (tx: Transaction) => Promise<T>, options?: TransactOptions): Promise<T>;
  /** Number of the newest change that readers can see. */
  readonly position: Sequence;
  /**
   * The same as `query` for a reader who has room for a page now. An answer that is one page and quickly found is given to
   * `take` before this returns, and that was all (undefined); of others all pages are to be read from what it returns.
   */
  queryAtOnce(
    filters: readonly Filter[],
    options: QueryOptions,
    take: (page: readonly StoredRow[]) => void,
  ): AsyncIterable<readonly StoredRow[]> | undefined;
  /**
   * All changes after `after`: first history, then live, without gap. Entries of removed events are skipped.
   * `beforePage` is waited for before each page is read, if it answers a promise; no entry is held meanwhile.
   */
  feed(after: Sequence, signal: AbortSignal, beforePage?: BeforePage): FeedSubscription;
  /**
   * Calls back synchronously after each commit, with what it changed, before `transact` resolves. For the live
   * path of the relay: the callback must be quick and must not throw.
   */
  onCommit(listener: (commit: Commit) => void): () => void;
  /**
   * For what is kept in memory of rows: called after each commit that another machine made, after `onCommit`. A promise is
   * waited for before the next work runs here. Who writes rows here knows it without being told.
   */
  onForeignCommit(follow: (commit: Commit) => Promise<void> | undefined): () => void;
  /**
   * Before an answer that must not be old: resolves when the view has everything that was acknowledged anywhere before the
   * call, or when that could not be learned in time. Undefined: the view has it.
   */
  upToDate(): Promise<void> | undefined;
  /** Times and ids of all matches; undefined when they are more than `cap`. Obeys no `limit`. */
  timedIds(filter: Filter, cap: number, signal?: AbortSignal): Promise<TimedIds | undefined>;
  /**
   * Removes events whose expiration (NIP-40) has come by `nowSeconds`; returns how many. `alongside` writes what follows
   * from an event's end, in the same transaction, before it goes.
   */
  sweepExpired(
    nowSeconds: number,
    alongside?: (tx: Transaction, event: VerifiedEvent) => Promise<void>,
    options?: TransactOptions,
  ): Promise<number>;
  readonly stats: StoreStats;
  /** Whether a write would be taken, as far as the last commit and the room on the disk tell. Writes only when the last one failed. */
  isWritable(): Promise<boolean>;
  /**
   * Writes a whole store into that folder, as it is at one moment. Commits wait until the moment is fixed, not until
   * the copy is written; `atThatMoment` is called while none is under way. Resolves to the milliseconds they waited.
   * The memory backend has nothing to copy.
   */
  snapshot(folder: string, atThatMoment: () => void): Promise<number>;
  /** Rewrites the database without its holes; `progress` hears how many bytes are written so far. */
  compact(progress?: (bytes: number) => void): Promise<void>;
  close(): Promise<void>;
}

export interface StoreStats {
  readonly events: number;
  readonly bytesOnDisk: number;
  /** Works waiting for a commit; bounded by `maxQueuedWorks`. */
  readonly queuedWorks: number;
}

/** The disk (or its reserve) is full. */
export class StoreFullError extends Error {
  override readonly name = "StoreFullError";
}

/** Too many works wait for a commit. */
export class StoreBusyError extends Error {
  override readonly name = "StoreBusyError";
}

export class StoreClosedError extends Error {
  override readonly name = "StoreClosedError";
}

/** Something about the log that several machines share. Reads go on, except after `diverged`. */
export class SharedLogError extends Error {
  override readonly name = "SharedLogError";

  constructor(
    /**
     * `unreachable`: nothing was stored. `unknown`: the commit was sent and no answer came, so that it is stored or not.
     * `too-large`: one work writes more than a change of the log may hold. `behind`: it is stored, but this machine cannot
     * follow. `not-leader`: another machine leads by now. `diverged`: this machine's copy is of another history and must be built
     * anew, or the others write what this version cannot read; it answers nothing.
     */
    readonly trouble: "unreachable" | "unknown" | "too-large" | "behind" | "not-leader" | "diverged",
    message: string,
  ) {
    super(message);
  }
}

/** Whether a work that failed so may have been stored all the same: nothing that it relies on may be taken back. */
export const mayBeStored = (error: unknown): boolean =>
  error instanceof SharedLogError && (error.trouble === "unknown" || error.trouble === "behind");
