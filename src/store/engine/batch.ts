// What the works of one commit write, before it is committed; and what another machine's commit did, before it is applied.

import type { VerifiedEvent } from "../../nostr/event.js";
import type { Commit, FeedEntry, RemovalCause, Sequence } from "../port.js";
import type { Change, EngineTable } from "./backend.js";
import type { Content } from "./content.js";
import type { Effect, Effects } from "./effects.js";
import { PendingTables } from "./reading.js";
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
