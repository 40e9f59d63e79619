// What is stored, as seen from a position: the layers in memory over the backend. All look-ups by sequence, id and
// address go through here, so that "removed" and "not committed yet" are judged in one place.

import { LoopTurns } from "../../base/loop-turns.js";
import type { EventId } from "../../nostr/ids.js";
import type { Sequence } from "../port.js";
import type { Backend, DiskRow, Layers } from "./backend.js";
import { PageMemories, type PageMemory } from "./backend.js";
import type { MergedStreams } from "./candidates.js";
import { VanishingAuthors } from "./deletions.js";
import { Row } from "./row.js";

export type AnyRow = Row | DiskRow;

const maxAskedRows = 64;
const maxAskedBytes = 16_384;

/**
 * Rows on disk that were asked for by their address last, parsed: each event about a repository asks for its
 * announcement. What a number stands for never changes.
 */
class AskedRows {
  readonly #rows = new Map<Sequence, DiskRow>();

  /** The same row as it was parsed before. */
  known(row: DiskRow): DiskRow {
    const known = this.#rows.get(row.seq);
    if (known || row.json.length > maxAskedBytes) return known ?? row;
    if (this.#rows.size === maxAskedRows) this.#rows.clear();
    this.#rows.set(row.seq, row);
    return row;
  }
}

export class Content {
  readonly turns = new LoopTurns();
  readonly pageMemories = new PageMemories();
  readonly #asked = new AskedRows();
  readonly vanishing: VanishingAuthors;

  constructor(
    readonly layers: Layers,
    readonly backend: Backend,
  ) {
    this.vanishing = new VanishingAuthors(backend);
  }

  /** The row in memory, whoever may see it. */
  inMemory(seq: Sequence): Row | undefined {
    return this.layers.active.row(seq) ?? this.layers.frozen?.row(seq);
  }

  row(seq: Sequence, view: Sequence, memory?: PageMemory, isWanted?: (header: DiskRow) => boolean): AnyRow | undefined {
    return this.#unlessHidden(this.anyRow(seq, view, memory, isWanted));
  }

  /** Also one that is hidden because its author vanishes. */
  anyRow(
    seq: Sequence,
    view: Sequence,
    memory?: PageMemory,
    isWanted?: (header: DiskRow) => boolean,
  ): AnyRow | undefined {
    const row = this.inMemory(seq);
    if (row) return row.isSeenAt(view) ? row : undefined;
    return seq <= view ? this.backend.row(seq, memory, isWanted) : undefined;
  }

  withId(id: EventId, view: Sequence): AnyRow | undefined {
    const row = this.layers.active.withId(id, view) ?? this.layers.frozen?.withId(id, view);
    if (row) return this.#unlessHidden(row);
    const seq = this.backend.seqOfId(id);
    return seq === undefined ? undefined : this.row(seq, view);
  }

  atAddress(address: string, view: Sequence): AnyRow | undefined {
    const row = this.layers.active.atAddress(address, view) ?? this.layers.frozen?.atAddress(address, view);
    if (row) return this.#unlessHidden(row);
    const seq = this.backend.seqOfAddress(address);
    const found = seq === undefined ? undefined : this.row(seq, view);
    return found && !(found instanceof Row) ? this.#asked.known(found) : found;
  }

  #unlessHidden(row: AnyRow | undefined): AnyRow | undefined {
    if (!row || this.vanishing.authors.size === 0) return row;
    return this.vanishing.hides(row instanceof Row ? row.event : row) ? undefined : row;
  }

  /** Opens the lists of a term. A layer that is dropped while a reader rests keeps answering him; rows are judged later. */
  open(term: string, streams: MergedStreams): void {
    const { active, frozen } = this.layers;
    streams.add(this.backend, term);
    if (active.has(term)) streams.add(active, term);
    if (frozen?.has(term)) streams.add(frozen, term);
  }
}
