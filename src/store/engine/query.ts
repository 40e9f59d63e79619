// Queries: each filter has a cursor with its own limit; the cursors are merged, each event comes once. A query works
// in short slices and lets others in between (performance.md, P2): nobody waits for somebody else's big answer.

import type { Clock, LoopTurns } from "../../base/clock.js";
import type { EventId } from "../../nostr/event.js";
import { type Filter, type Matcher, matcherOf, matchesNothing, searchMatcher } from "../../nostr/filter.js";
import type { BeforePage, Sequence, StopSign, StoredRow } from "../port.js";
import type { PageMemory } from "./backend.js";
import { CommonEntries, firstChunkOf, MergedStreams, type Plan, planOf, shortestOf } from "./candidates.js";
import type { Content } from "./content.js";
import {
  type AnyRow,
  compareEntries,
  type DiskRow,
  type Entry,
  isExpired,
  matchable,
  Row,
  severalIdentifiers,
} from "./row.js";

export const defaultPageRows = 200;
/** A page ends early here: who takes it slowly would hold 200 MiB of large events otherwise (threats row 25). */
const maxPageBytes = 256 * 1024;

/** What a reader may see. */
export interface Sight {
  readonly content: Content;
  readonly view: Sequence;
  readonly upTo: Sequence;
  readonly nowSeconds: number;
}

export function fullMatcher(filter: Filter): Matcher {
  const matches = matcherOf(filter);
  if (filter.search === undefined) return matches;
  const found = searchMatcher(filter.search);
  return (event) => matches(event) && found(event);
}

/** `tagTexts`: how the tags that led to the row are written, if they are all that is asked for. */
type RowMatcher = (row: AnyRow, tagTexts: readonly Buffer[] | undefined) => boolean;

/**
 * The full match, cheaper where it can be: a tag that the index found is looked for in the stored text as it must be
 * written there (quotes inside strings are escaped, so it can stand nowhere else), and nothing is parsed. What is not
 * found that way is matched in full: another list may have led to the same event.
 */
function rowMatcher(filter: Filter, plan: Plan): RowMatcher {
  if (plan.type !== "terms" || filter.search !== undefined || filter.tags === undefined) {
    const matches = fullMatcher(filter);
    return (row) => matches(matchable(row));
  }
  const { tags: _found, ...header } = filter;
  const headerMatches = matcherOf(header);
  let full: Matcher | undefined;
  // Made for the first row that needs it: most questions have none, and it may hold a thousand values.
  const matches = (row: AnyRow): boolean => {
    full ??= fullMatcher(filter);
    return full(matchable(row));
  };
  return (row, tagTexts) => {
    if (row instanceof Row || !tagTexts) return matches(row);
    return headerMatches(row) && (tagTexts.every((text) => row.hasText(text)) || matches(row));
  };
}

/** What the header alone says against a row, where the index has not asked it already. */
function headerMatcher({ authors, kinds, readers }: Filter, plan: Plan): Matcher | undefined {
  if (plan.type !== "terms" || plan.residual !== "header") return undefined;
  return matcherOf({ ...(authors && { authors }), ...(kinds && { kinds }), ...(readers && { readers }) });
}

/** So many candidates that were not wanted are looked at before the lists of other fields are asked too. */
const patience = 64;

/** Opens the lists of a plan one by one, so that a filter of 5,000 values can be opened in slices too. */
export class Candidates {
  readonly #sight: Sight;
  readonly #filter: Filter;
  readonly #plan: Plan;
  readonly #streams: MergedStreams;
  /** Once the first lists have led to much that was not wanted. */
  #common: CommonEntries | undefined;
  #opening: Iterator<void>;
  #isOpen = false;
  #unwanted = 0;

  constructor(sight: Sight, filter: Filter, plan: Plan) {
    this.#sight = sight;
    this.#filter = filter;
    this.#plan = plan;
    this.#streams = this.#merged(plan.type === "terms" ? plan.terms.length : 1);
    this.#opening = this.#open(sight, plan);
  }

  /** How the tags are written that led to the last entry, if these are all tags that are asked for. */
  get tagTexts(): readonly Buffer[] | undefined {
    const texts = this.#common
      ? this.#common.lists.flatMap(({ found }) => found?.tagTexts ?? [])
      : (this.#streams.found?.tagTexts ?? []);
    return texts.length === this.#filter.tags?.size ? texts : undefined;
  }

  /** One step of opening; true when all lists are open. */
  open(): boolean {
    this.#isOpen ||= this.#opening.next().done === true;
    return this.#isOpen;
  }

  /** When all lists are open. */
  next(): Entry | "none yet" | undefined {
    return this.#common ? this.#common.next() : this.#streams.next();
  }

  /** The last entry was not what is asked for. */
  passedOver(): void {
    if (++this.#unwanted !== patience || this.#plan.type !== "terms" || !this.#plan.also) return;
    this.#opening = this.#openOthers(this.#plan.also);
    this.#isOpen = false;
  }

  #merged(lists: number): MergedStreams {
    const { since = 0, until = Number.MAX_SAFE_INTEGER, limit = Number.POSITIVE_INFINITY } = this.#filter;
    return new MergedStreams(since, until, firstChunkOf(limit, lists));
  }

  *#openOthers(also: readonly (readonly string[])[]): Generator<void> {
    const lists = [this.#streams];
    for (const terms of also) {
      const streams = this.#merged(terms.length);
      for (const term of terms) {
        this.#sight.content.open(term, streams);
        yield;
      }
      lists.push(streams);
    }
    this.#common = new CommonEntries(lists);
  }

  *#open({ content, view }: Sight, plan: Plan): Generator<void> {
    if (plan.type === "terms") {
      const terms = plan.instead
        ? shortestOf(plan.instead, (term, streams) => content.open(term, streams))
        : plan.terms;
      for (const term of terms) {
        content.open(term, this.#streams);
        yield;
      }
      return;
    }
    const found: Entry[] = [];
    const look = function* (row: AnyRow | undefined): Generator<void> {
      if (row) found.push({ time: row.time, idHigh: row.idHigh, idLow: row.idLow, seq: row.seq });
      yield;
    };
    if (plan.type === "ids" && plan.ids.length === 1) {
      // One alone has no order; whether it is to be seen is judged when it is read.
      const seq = content.placeOfId(plan.ids[0] as EventId, view);
      if (seq !== undefined) found.push({ time: 0, idHigh: 0, idLow: 0, seq });
    } else if (plan.type === "ids") for (const id of plan.ids) yield* look(content.withId(id, view));
    else for (const address of plan.addresses) yield* look(content.atAddress(address, view));
    if (plan.type === "addresses") content.open(severalIdentifiers, this.#streams);
    found.sort(compareEntries);
    // All of them at once: nothing comes after them.
    this.#streams.add({ scan: (_term, after) => (after ? [] : found) }, "");
  }
}

class FilterCursor {
  readonly #candidates: Candidates;
  readonly #filter: Filter;
  readonly #plan: Plan;
  /** Made for the first candidate: a question that finds nothing asks for a thousand values in vain. */
  #matches: RowMatcher | undefined;
  #isWanted: ((header: DiskRow) => boolean) | undefined;
  #left: number;
  /** Found before, and not in memory any more. */
  #again: Entry | undefined;
  #headEntry: Entry | undefined;
  head: AnyRow | undefined;
  isDone = false;
  /** Where rows are read into; changed from page to page. */
  memory: PageMemory | undefined;

  constructor(
    readonly sight: Sight,
    filter: Filter,
  ) {
    this.#filter = filter;
    this.#plan = planOf(filter, sight.content.lacksTag);
    this.#candidates = new Candidates(sight, filter, this.#plan);
    this.#left = filter.limit ?? Number.POSITIVE_INFINITY;
  }

  /** Looks at candidates until the next match is found; false when the slice ended before. */
  seek(slice: Slice): boolean {
    while (!this.head && !this.isDone) {
      if (slice.isOver()) return false;
      if (!this.#candidates.open()) continue;
      const entry = this.#left > 0 ? (this.#again ?? this.#candidates.next()) : undefined;
      this.#again = undefined;
      if (entry === "none yet") continue;
      this.#headEntry = entry;
      if (!entry) this.isDone = true;
      else this.head = this.#judge(entry);
      if (!this.head) this.#candidates.passedOver();
    }
    return true;
  }

  take(): void {
    this.head = undefined;
    this.#left--;
  }

  #judge(entry: Entry): AnyRow | undefined {
    const { content, view, upTo, nowSeconds } = this.sight;
    if (entry.seq > upTo) return undefined;
    const matches = this.#matcher();
    const row = content.row(entry.seq, view, this.memory, this.#isWanted);
    if (!row) return undefined;
    if (!isExpired(row, nowSeconds) && matches(row, this.#candidates.tagTexts)) return row;
    if (!(row instanceof Row)) this.memory?.untake();
    return undefined;
  }

  #matcher(): RowMatcher {
    if (!this.#matches) {
      this.#matches = rowMatcher(this.#filter, this.#plan);
      this.#isWanted = headerMatcher(this.#filter, this.#plan);
    }
    return this.#matches;
  }

  /** The page is over, and its memory goes: what was found and not answered yet is read again for the next. */
  leaveMemory(): void {
    this.memory = undefined;
    if (!this.head || this.head instanceof Row) return;
    this.#again = this.#headEntry;
    this.head = undefined;
  }
}

export interface QueryBounds {
  readonly limit: number;
  readonly pageRows: number;
  readonly passingRows: boolean;
  readonly beforePage?: BeforePage | undefined;
  readonly signal: StopSign | undefined;
}

/** How a page came to its end: it is full, nothing comes after it, or the slice was over before. */
type PageEnd = "full" | "last" | "later";

/** A query on its way through its pages. */
export class PagedQuery {
  readonly #sight: Sight;
  readonly #cursors: readonly FilterCursor[];
  readonly #bounds: QueryBounds;
  readonly #slice: Slice;
  #left: number;
  #memory: PageMemory | undefined;
  #page: StoredRow[] = [];
  #pageBytes = 0;

  constructor(sight: Sight, filters: readonly Filter[], bounds: QueryBounds, slice: Slice) {
    this.#sight = sight;
    this.#bounds = bounds;
    this.#slice = slice;
    this.#left = bounds.limit;
    this.#cursors = filters
      .filter((filter) => !matchesNothing(filter))
      .map((filter) => new FilterCursor(sight, filter));
  }

  /**
   * The whole answer, if it is one page and found within a slice: `take` is called with it, and nothing is left
   * (undefined). Otherwise answers the pages, from the first on. For who has room for a page.
   */
  atOnce(take: (page: readonly StoredRow[]) => void): AsyncGenerator<readonly StoredRow[]> | undefined {
    this.#begin();
    let isAnswered = false;
    try {
      const end = this.#fill();
      if (end !== "last") return this.#pages(end);
      isAnswered = true;
      if (this.#page.length > 0) take(this.#page);
      return undefined;
    } finally {
      if (isAnswered) this.#giveBack();
    }
  }

  pages(): AsyncGenerator<readonly StoredRow[]> {
    return this.#pages(undefined);
  }

  /** `begun`: how far the first page is already. */
  async *#pages(begun: PageEnd | undefined): AsyncGenerator<readonly StoredRow[]> {
    const { beforePage, signal } = this.#bounds;
    signal?.throwIfAborted();
    for (let first = begun; ; first = undefined) {
      // Nothing is held while a reader makes room: a thousand of them may take as long as they like.
      const room = first === undefined ? beforePage?.() : undefined;
      if (room) await room;
      signal?.throwIfAborted();
      if (first === undefined) this.#begin();
      try {
        let end = first ?? this.#fill();
        while (end === "later") {
          await this.#slice.rest(signal);
          end = this.#fill();
        }
        if (this.#page.length > 0) yield this.#page;
        if (end === "last" || this.#left === 0) return;
        for (const cursor of this.#cursors) cursor.leaveMemory();
      } finally {
        this.#giveBack();
      }
      await this.#slice.rest(signal);
    }
  }

  #begin(): void {
    this.#memory = this.#bounds.passingRows ? this.#sight.content.pageMemories.borrow() : undefined;
    for (const cursor of this.#cursors) cursor.memory = this.#memory;
    this.#page = [];
    this.#pageBytes = 0;
  }

  #fill(): PageEnd {
    const page = this.#page;
    while (page.length < this.#bounds.pageRows && this.#pageBytes < maxPageBytes) {
      const row = this.#left > 0 ? nextRow(this.#cursors, this.#slice) : undefined;
      if (row === "later") return "later";
      if (!row) return "last";
      page.push(row);
      this.#pageBytes += row.size;
      this.#left--;
    }
    return "full";
  }

  #giveBack(): void {
    if (this.#memory) this.#sight.content.pageMemories.giveBack(this.#memory);
    this.#memory = undefined;
    // Rows that passed are over. Whoever was given the page may remember it for as long as it waits for the next.
    if (this.#bounds.passingRows) this.#page.length = 0;
    this.#page = [];
  }
}

function nextRow(cursors: readonly FilterCursor[], slice: Slice): AnyRow | "later" | undefined {
  let best: AnyRow | undefined;
  for (const cursor of cursors) {
    if (!cursor.seek(slice)) return "later";
    if (cursor.head && (!best || compareEntries(cursor.head, best) < 0)) best = cursor.head;
  }
  if (!best) return undefined;
  for (const cursor of cursors) if (cursor.head?.seq === best.seq) cursor.take();
  return best;
}

const sliceMs = 3;
const lookBetween = 16;

/**
 * Says when a long computation should let others run: however many run, each turn of the event loop resumes one of them,
 * so that a small question waits for one slice and not for all of them.
 */
export class Slice {
  #startedMs: number;
  #steps = 0;

  constructor(
    readonly clock: Clock,
    readonly turns: LoopTurns,
  ) {
    this.#startedMs = clock.monotonicMs();
  }

  isOver(): boolean {
    if (++this.#steps % lookBetween !== 0) return false;
    return this.clock.monotonicMs() - this.#startedMs > sliceMs;
  }

  async rest(signal?: StopSign): Promise<void> {
    await this.turns.rest();
    signal?.throwIfAborted();
    this.#startedMs = this.clock.monotonicMs();
  }
}
