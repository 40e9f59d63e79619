// The writes of one commit, while its works run. They live in memory with sequence numbers that no reader has reached
// yet; every write leaves a note how to take it back, so that a failing work loses exactly its own.

import type { VerifiedEvent } from "../../nostr/event.js";
import type { FeedEntry, RemovalCause, Sequence } from "../port.js";
import type { Change, EngineTable, Removal } from "./backend.js";
import type { AnyRow, Content } from "./content.js";
import { Row } from "./row.js";
import { PendingTables } from "./tables.js";

type Write =
  | { readonly type: "stored"; readonly row: Row }
  | { readonly type: "removed"; readonly row: Row; readonly removal: Removal };

export class Batch {
  readonly tables = new PendingTables();
  readonly #writes: Write[] = [];
  readonly #undo: (() => void)[] = [];

  constructor(
    readonly content: Content,
    /** Position before the batch. */
    readonly start: Sequence,
  ) {}

  get #nextSeq(): Sequence {
    return this.start + this.#writes.length + 1;
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

  store(event: VerifiedEvent): Row {
    const row = new Row(this.#nextSeq, event);
    const { active } = this.content.layers;
    active.add(row);
    this.#writes.push({ type: "stored", row });
    this.#undo.push(() => {
      this.#writes.pop();
      active.drop(row);
    });
    return row;
  }

  remove(found: AnyRow, cause: RemovalCause): void {
    const seq = this.#nextSeq;
    const { active } = this.content.layers;
    // A row on disk is taken into memory until the commit is published: readers see it from there meanwhile.
    const row = found instanceof Row ? found : new Row(found.seq, found.event);
    row.removedAt = seq;
    if (row !== found) active.add(row);
    const { id, event, address } = row;
    const removal = { seq, id, pubkey: event.pubkey, kind: event.kind, address, cause };
    this.#writes.push({ type: "removed", row, removal });
    this.#undo.push(() => {
      this.#writes.pop();
      row.restore();
      if (row !== found) active.drop(row);
    });
  }

  setRow(table: EngineTable, key: string, text: string | undefined): void {
    this.#undo.push(this.tables.set(table, key, text));
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
        if (write.row.seq <= this.start) removed.push(write.row);
      }
    }
    return { position: this.#nextSeq - 1, added, removed, removals, tables: this.tables.changes };
  }

  /** What the feed says about it: an event that came and went in one commit was never stored. */
  entries(): FeedEntry[] {
    return this.#writes.flatMap((write): FeedEntry[] => {
      if (write.type === "removed") return [{ type: "removed", ...write.removal }];
      return write.row.isRemoved ? [] : [{ seq: write.row.seq, type: "stored", event: write.row.event }];
    });
  }

  /** After the commit: removed rows leave the memory. A frozen layer keeps them until it is dropped as a whole. */
  settle(): void {
    for (const write of this.#writes) if (write.type === "removed") this.content.layers.active.drop(write.row);
  }
}
