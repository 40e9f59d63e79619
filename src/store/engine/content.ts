// What is stored, as seen from a position: layers of rows in memory over the backend. All look-ups by sequence, id and
// address go through Content, so that "removed", "hidden" and "not committed yet" are judged in one place.

import { LoopTurns } from "../../base/clock.js";
import type { EventId, NostrEvent, Pubkey } from "../../nostr/event.js";
import type { Sequence } from "../port.js";
import { type Backend, PageMemories, type PageMemory } from "./backend.js";
import type { MergedStreams } from "./candidates.js";
import { type AnyRow, compareEntries, type DiskRow, type Entry, expirationEntry, expiring, Row } from "./row.js";

/** First index whose entry is answered before `entry` or is it: lists run from the oldest to the newest. */
function lowerBound(list: readonly Entry[], entry: Entry): number {
  const last = list[list.length - 1];
  if (last === undefined || compareEntries(last, entry) > 0) return list.length;
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareEntries(list[middle] as Entry, entry) > 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many entries are not newer than `time`. */
function countUpTo(list: readonly Entry[], time: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((list[middle] as Entry).time <= time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Rows in memory under all their terms. The whole index of the memory store; for LMDB the rows that are durable in the log
 * but not yet indexed on disk. Rows of a running transaction are here too: `view` decides which readers see them.
 */
export class MemoryLayer {
  /** Most terms have one entry (words, ids): a list is made only for the second. */
  readonly #lists = new Map<string, Entry | Entry[]>();
  readonly #bySeq = new Map<Sequence, Row>();
  readonly #byId = new Map<EventId, Row>();
  readonly #byAddress = new Map<string, Row>();
  readonly #comes: ((term: string) => void) | undefined;
  #textBytes = 0;

  /** `comes` hears of each term before the first row is listed under it. */
  constructor(comes?: (term: string) => void) {
    this.#comes = comes;
  }

  get size(): number {
    return this.#bySeq.size;
  }

  /** About how much text the rows hold. */
  get textBytes(): number {
    return this.#textBytes;
  }

  add(row: Row): void {
    this.#bySeq.set(row.seq, row);
    row.olderWithId = this.#byId.get(row.id);
    this.#byId.set(row.id, row);
    if (row.address !== undefined) {
      row.olderAtAddress = this.#byAddress.get(row.address);
      this.#byAddress.set(row.address, row);
    }
    for (const term of row.terms()) this.#insert(term, row);
    const expiration = expirationEntry(row);
    if (expiration) this.#insert(expiring, expiration);
    this.#textBytes += row.event.raw.length;
  }

  drop(row: Row): void {
    if (!this.#bySeq.delete(row.seq)) return;
    takeOut(this.#byId, row.id, row, "olderWithId");
    if (row.address !== undefined) takeOut(this.#byAddress, row.address, row, "olderAtAddress");
    for (const term of row.terms()) this.#delete(term, row);
    const expiration = expirationEntry(row);
    if (expiration) this.#delete(expiring, expiration);
    this.#textBytes -= row.event.raw.length;
  }

  row(seq: Sequence): Row | undefined {
    return this.#bySeq.get(seq);
  }

  rows(): IterableIterator<Row> {
    return this.#bySeq.values();
  }

  withId(id: EventId, view: Sequence): Row | undefined {
    let row = this.#byId.get(id);
    while (row && !row.isSeenAt(view)) row = row.olderWithId;
    return row;
  }

  atAddress(address: string, view: Sequence): Row | undefined {
    let row = this.#byAddress.get(address);
    while (row && !row.isSeenAt(view)) row = row.olderAtAddress;
    return row;
  }

  /** Whether anything is listed under a term. */
  has(term: string): boolean {
    return this.#lists.has(term);
  }

  /** The list of a term, oldest first; not to be changed. */
  list(term: string): readonly Entry[] {
    const there = this.#lists.get(term);
    return there === undefined ? [] : Array.isArray(there) ? there : [there];
  }

  terms(): string[] {
    return [...this.#lists.keys()];
  }

  /** Up to `max` entries after a place in the order, whoever may see them. */
  scan(term: string, after: Entry | undefined, since: number, until: number, max: number): Entry[] {
    const list = this.list(term);
    let index = countUpTo(list, until);
    if (after) index = Math.min(index, lowerBound(list, after));
    const found: Entry[] = [];
    while (index > 0 && found.length < max) {
      const entry = list[--index] as Entry;
      if (entry.time < since) break;
      found.push(entry);
    }
    return found;
  }

  #insert(term: string, entry: Entry): void {
    const there = this.#lists.get(term);
    if (there === undefined) {
      this.#comes?.(term);
      this.#lists.set(term, entry);
      return;
    }
    if (there === entry) return;
    const list = Array.isArray(there) ? there : [there];
    if (list !== there) this.#lists.set(term, list);
    const index = lowerBound(list, entry);
    if (index === list.length) list.push(entry);
    else if (list[index] !== entry) list.splice(index, 0, entry);
  }

  #delete(term: string, entry: Entry): void {
    const there = this.#lists.get(term);
    const list = Array.isArray(there) ? there : there === undefined ? [] : [there];
    const index = lowerBound(list, entry);
    const found = list[index];
    if (!found || compareEntries(found, entry) !== 0) return;
    if (list.length === 1) this.#lists.delete(term);
    else list.splice(index, 1);
  }
}

/** Takes a row out of those with the same id or address, which hang together from the newest to the oldest. */
function takeOut<Key>(newest: Map<Key, Row>, key: Key, row: Row, older: "olderWithId" | "olderAtAddress"): void {
  const first = newest.get(key);
  if (first === row) {
    if (row[older]) newest.set(key, row[older]);
    else newest.delete(key);
    return;
  }
  for (let other = first; other; other = other[older]) if (other[older] === row) other[older] = row[older];
}

/** The rows in memory, newest layer first; a backend may freeze one while it indexes it. */
export interface Layers {
  active: MemoryLayer;
  frozen: MemoryLayer | undefined;
}

export interface Vanishing {
  readonly by: EventId;
  readonly until: number;
}

const prefix = "vanishing:";
export const vanishingKey = (pubkey: Pubkey): string => `${prefix}${pubkey}`;

/**
 * Requests to vanish (NIP-62) whose author has more events than one commit should remove (threats row 39). The
 * request's commit binds and hides all of them; they are removed in steps after it, each a commit of its own. A row in
 * the table of deletions says that a request is not done: the next start goes on.
 */
export class VanishingAuthors {
  readonly authors = new Map<Pubkey, Vanishing>();

  constructor(backend: Backend) {
    const left = backend.tableRows("deletions", { prefix, limit: Number.MAX_SAFE_INTEGER - 1 });
    for (const [key, text] of left) this.#note(key, text);
  }

  /** What a commit has written into the table of deletions. */
  follow(rows: ReadonlyMap<string, string | undefined> | undefined): void {
    for (const [key, text] of rows ?? []) if (key.startsWith(prefix)) this.#note(key, text);
  }

  /** Nobody sees the row any more, though it is still there. */
  hides(event: Pick<NostrEvent, "id" | "pubkey" | "created_at">): boolean {
    const vanishing = this.authors.get(event.pubkey);
    return vanishing !== undefined && event.created_at <= vanishing.until && event.id !== vanishing.by;
  }

  #note(key: string, text: string | undefined): void {
    const pubkey = key.slice(prefix.length) as Pubkey;
    if (text === undefined) this.authors.delete(pubkey);
    else this.authors.set(pubkey, JSON.parse(text) as Vanishing);
  }
}

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

  /** True: nothing is listed under the tag. */
  readonly lacksTag = (letter: string, value: string): boolean => this.backend.lacksTag(letter, value);

  /** Where the event with an id is, whether or not a reader may see it. */
  placeOfId(id: EventId, view: Sequence): Sequence | undefined {
    const row = this.layers.active.withId(id, view) ?? this.layers.frozen?.withId(id, view);
    return row ? row.seq : this.backend.seqOfId(id);
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
