// What readers of this machine see, and how that changes. A batch holds the writes of one commit, made here or by another
// machine. The view applies each batch and tells the listeners. The commit order of a store that no other machine shares is
// in this file too.

import type { Pubkey, VerifiedEvent } from "../../nostr/event.js";
import type { Commit, FeedEntry, RemovalCause, Sequence } from "../port.js";
import type { Applied, Change, EngineTable } from "./backend.js";
import type { Content } from "./content.js";
import type { Effect, Effects, TableChanges } from "./effects.js";
import { PendingTables, type UnmarkedAuthors } from "./reading.js";
import { type AnyRow, pendingView, type Removal, Row } from "./row.js";

type Write =
  | { readonly type: "stored"; readonly row: Row }
  /** Without a row: what the same commit had stored, as another machine tells it. */
  | { readonly type: "removed"; readonly row: Row | undefined; readonly removal: Removal };

/**
 * The writes of one commit, while its works run. They live in memory with sequence numbers that no reader has reached
 * yet; every write leaves a note how to take it back, so that a failing work loses exactly its own.
 */
export class Batch {
  readonly tables = new PendingTables();
  readonly #passing: VerifiedEvent[] = [];
  readonly #writes: Write[] = [];
  readonly #undo: (() => void)[] = [];
  #last: Sequence;
  /** About how much text it holds: what was rolled back is counted too. */
  textLength = 0;

  constructor(
    readonly content: Content,
    /** Position before the batch. */
    readonly start: Sequence,
  ) {
    this.#last = start;
  }

  get isEmpty(): boolean {
    return this.#undo.length === 0;
  }

  /** A place to roll back to. */
  get mark(): number {
    return this.#undo.length;
  }

  rollBackTo(mark: number): void {
    while (this.#undo.length > mark) this.#undo.pop()?.();
  }

  /** Numbers are the next ones, or those that another machine gave. */
  store(event: VerifiedEvent, seq = this.#last + 1): Row {
    const row = new Row(seq, event);
    const { active } = this.content.layers;
    active.add(row);
    this.textLength += event.raw.length;
    this.#write({ type: "stored", row }, seq, () => active.drop(row));
    return row;
  }

  remove(found: AnyRow, cause: RemovalCause, seq = this.#last + 1): void {
    const { active } = this.content.layers;
    // A row on disk is taken into memory until the commit is published: readers see it from there meanwhile.
    const row = found instanceof Row ? found : new Row(found.seq, found.event);
    row.removedAt = seq;
    if (row !== found) active.add(row);
    const { id, event, address } = row;
    const removal = { seq, id, pubkey: event.pubkey, kind: event.kind, address, cause };
    this.#write({ type: "removed", row, removal }, seq, () => {
      row.restore();
      if (row !== found) active.drop(row);
    });
  }

  setRow(table: EngineTable, key: string, text: string | undefined): void {
    this.textLength += key.length + (text?.length ?? 0);
    this.#undo.push(this.tables.set(table, key, text));
  }

  pass(event: VerifiedEvent): void {
    this.textLength += event.raw.length;
    this.#passing.push(event);
    this.#undo.push(() => this.#passing.pop());
  }

  change(): Change {
    const added: Row[] = [];
    const removed: Row[] = [];
    const removals: Removal[] = [];
    for (const write of this.#writes) {
      if (write.type === "stored") {
        if (!write.row.isRemoved) added.push(write.row);
      } else {
        removals.push(write.removal);
        if (write.row && write.row.seq <= this.start) removed.push(write.row);
      }
    }
    return { position: this.#last, added, removed, removals, tables: this.tables.changes };
  }

  /** The same for a shared log: effects in words of their own. */
  effects(): Effects {
    const writes = this.#writes.flatMap((write): Effect[] => {
      if (write.type === "stored") {
        return write.row.isRemoved ? [] : [{ type: "stored", seq: write.row.seq, event: write.row.event }];
      }
      const target = write.row && write.row.seq <= this.start ? write.row.seq : undefined;
      return [{ type: "removed", removal: write.removal, target }];
    });
    const tables = new Map([...this.tables.changes].map(([table, rows]) => [table, new Map(rows)]));
    return { start: this.start, position: this.#last, writes, tables, passing: [...this.#passing] };
  }

  /** The effects of a commit, in an empty batch. False when they do not fit what is stored here. */
  replay(effects: Effects): boolean {
    if (effects.start !== this.start) return false;
    for (const effect of effects.writes) {
      if (effect.type === "stored") this.store(effect.event, effect.seq);
      else if (!this.#replayRemoval(effect.removal, effect.target)) return false;
    }
    for (const [table, rows] of effects.tables) for (const [key, text] of rows) this.setRow(table, key, text);
    for (const event of effects.passing) this.pass(event);
    this.#last = effects.position;
    return true;
  }

  /** What the feed says about it: an event that came and went in one commit was never stored. */
  entries(): FeedEntry[] {
    return this.#writes.flatMap((write): FeedEntry[] => {
      if (write.type === "removed") return [{ type: "removed", ...write.removal }];
      return write.row.isRemoved ? [] : [{ seq: write.row.seq, type: "stored", event: write.row.event }];
    });
  }

  /** What listeners hear of it. */
  commit(isForeign: boolean): Commit {
    const { changes } = this.tables;
    return {
      entries: this.entries(),
      changedKeys: (table) => changes.get(table)?.keys() ?? [],
      passing: this.#passing,
      isForeign,
    };
  }

  /** Whether anything of it must be written: an event that is only passed on leaves no trace. */
  get isLasting(): boolean {
    return this.#writes.length > 0 || this.tables.changes.size > 0;
  }

  /** After the commit: removed rows leave the memory. A frozen layer keeps them until it is dropped as a whole. */
  settle(): void {
    for (const write of this.#writes) {
      if (write.type === "removed" && write.row) this.content.layers.active.drop(write.row);
    }
  }

  #replayRemoval(removal: Removal, target: Sequence | undefined): boolean {
    if (target === undefined) {
      this.#write({ type: "removed", row: undefined, removal }, removal.seq, () => undefined);
      return true;
    }
    const row = this.content.anyRow(target, pendingView);
    if (row?.id !== removal.id) return false;
    this.remove(row, removal.cause, removal.seq);
    return true;
  }

  #write(write: Write, seq: Sequence, undo: () => void): void {
    const last = this.#last;
    this.#writes.push(write);
    this.#last = seq;
    this.#undo.push(() => {
      this.#writes.pop();
      this.#last = last;
      undo();
    });
  }
}

/** Effects that do not fit what is stored here: this machine's history is another one. */
export class UnfittingEffectsError extends Error {
  override readonly name = "UnfittingEffectsError";
}

interface CommitFacts {
  /** The row of the shared log it came from. */
  readonly applied?: Applied;
  readonly isForeign?: boolean;
}

const pubkeyChars = 64;

export class View {
  readonly #listeners = new Set<(commit: Commit) => void>();
  readonly #followers = new Set<(commit: Commit) => Promise<void> | undefined>();
  position: Sequence;

  constructor(
    readonly content: Content,
    readonly unmarkedAuthors: UnmarkedAuthors,
    /** Readers see a commit, and listeners have heard of it. */
    readonly published: (isForeign: boolean) => void,
  ) {
    this.position = content.backend.position;
  }

  get applied(): Applied | undefined {
    return this.content.backend.applied;
  }

  onCommit(listener: (commit: Commit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  onForeignCommit(follow: (commit: Commit) => Promise<void> | undefined): () => void {
    this.#followers.add(follow);
    return () => this.#followers.delete(follow);
  }

  begin(): Batch {
    return new Batch(this.content, this.position);
  }

  /** Rejects with nothing of it written or seen. */
  async commit(batch: Batch, { applied, isForeign = false }: CommitFacts = {}): Promise<void> {
    const { backend, vanishing } = this.content;
    const change = batch.change();
    if (batch.isLasting || applied) {
      try {
        await backend.commit(applied ? { ...change, applied } : change);
      } catch (error) {
        batch.rollBackTo(0);
        throw error;
      }
    }
    const deletions = change.tables.get("deletions");
    vanishing.follow(deletions);
    // A mark that another machine made must be found here, or a deleted event would be accepted again.
    for (const key of deletions?.keys() ?? []) this.unmarkedAuthors.delete(key.slice(0, pubkeyChars) as Pubkey);
    batch.settle();
    this.position = change.position;
    const commit = batch.commit(isForeign);
    for (const listener of this.#listeners) callSafely(() => listener(commit));
    this.published(isForeign);
    backend.published();
    if (isForeign) for (const follow of this.#followers) await follow(commit);
  }

  /** A commit out of the shared log, own or foreign. */
  async apply(effects: Effects, facts: CommitFacts): Promise<void> {
    const batch = this.begin();
    if (!batch.replay(effects)) {
      batch.rollBackTo(0);
      throw new UnfittingEffectsError(`change ${facts.applied?.n} does not fit the view at position ${this.position}`);
    }
    await this.commit(batch, facts);
  }

  /** Rows of this machine alone. */
  async applyLocal(tables: TableChanges): Promise<void> {
    const batch = this.begin();
    for (const [table, rows] of tables) for (const [key, text] of rows) batch.setRow(table, key, text);
    await this.commit(batch);
  }
}

/** What is committed stays committed: a listener's bug must not look like a failed commit. It ends the process instead. */
function callSafely(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/** The order of commits. A store alone on its machine has its own; machines that share a log take turns in one. */
export interface Order {
  /** How long a work that nobody waits for may wait for others. 0: a commit costs little, and nothing waits. */
  readonly ridersWaitMs: number;
  /** A work that takes no part in the order needs no other machine. */
  readonly isShared: boolean;
  /** Works stop being added to a batch when their text is about as long as this. */
  readonly batchBytes: number;
  /**
   * Calls `run` when everything that was committed before, anywhere, is in the view and nobody else can commit; then commits
   * what it answers (undefined: nothing). Resolves when that is durable and in the view. Rejections before `run` was called
   * concern all works, later ones the works it ran.
   */
  commit(run: () => Promise<Batch | undefined>): Promise<void>;
  /** Whether works of a commit that failed so may be run again, each alone. */
  mayRunAgain(error: unknown): boolean;
  /** Brings what others have committed into the view. */
  catchUp(): Promise<void>;
  /** See `Store.upToDate`. */
  upToDate(): Promise<void> | undefined;
  /** Why this machine must answer nothing at all. */
  readonly stopped: Error | undefined;
  /** Whether this machine follows the order closely enough to be asked. */
  readonly isReady: boolean;
  /** Who leads, as a number that grows with each change of leader; undefined where nobody has to. Known while `run` runs. */
  readonly epoch: number | undefined;
  close(): Promise<void>;
}

export class OwnOrder implements Order {
  readonly ridersWaitMs = 0;
  readonly isShared = false;
  readonly batchBytes = Number.POSITIVE_INFINITY;
  readonly stopped = undefined;
  readonly isReady = true;
  readonly epoch = undefined;

  constructor(readonly view: View) {}

  async commit(run: () => Promise<Batch | undefined>): Promise<void> {
    const batch = await run();
    if (batch) await this.view.commit(batch);
  }

  mayRunAgain(): boolean {
    return true;
  }

  async catchUp(): Promise<void> {}

  upToDate(): undefined {}

  async close(): Promise<void> {}
}
