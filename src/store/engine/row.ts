// A stored event, in memory or read from disk, the terms it is listed under, and the log's records. In memory it has the
// two numbers that say which readers see it: the change that stored it and, once it is removed, the change that removed
// it. A reader at position P sees what was stored up to P and not removed by P.

import {
  addressOf,
  addressText,
  type EventId,
  expirationOf,
  isAddressable,
  type NostrEvent,
  type Pubkey,
  tagValues,
  type VerifiedEvent,
} from "../../nostr/event.js";
import { searchableWords, searchStem } from "../../nostr/filter.js";
import type { RemovalCause, Sequence, StoredRow } from "../port.js";

const notRemoved = Number.POSITIVE_INFINITY;

/** What NIP-01 and NIP-40 say about an event's place. */
export function rowFields(event: VerifiedEvent): {
  readonly address: string | undefined;
  readonly expiration: number | undefined;
} {
  const address = addressOf(event);
  return { address: address && addressText(address), expiration: expirationOf(event) };
}

export class Row implements StoredRow, Entry {
  readonly id: EventId;
  readonly created_at: number;
  readonly time: number;
  readonly idHigh: number;
  readonly idLow: number;
  readonly expiration: number | undefined;
  readonly address: string | undefined;
  removedAt = notRemoved;
  /** An earlier row with the same id or address that some readers may still see. */
  olderWithId: Row | undefined;
  olderAtAddress: Row | undefined;

  constructor(
    readonly seq: Sequence,
    readonly event: VerifiedEvent,
  ) {
    this.id = event.id;
    this.created_at = event.created_at;
    this.time = Math.min(event.created_at, maxTime);
    this.idHigh = idHighOf(event.id);
    this.idLow = idLowOf(event.id);
    const { address, expiration } = rowFields(event);
    this.address = address;
    this.expiration = expiration;
  }

  get pubkey(): Pubkey {
    return this.event.pubkey;
  }

  get kind(): number {
    return this.event.kind;
  }

  get size(): number {
    return this.event.raw.length;
  }

  get json(): Buffer {
    return Buffer.from(this.event.raw);
  }

  get text(): string {
    return this.event.raw;
  }

  /** Made at each call: needed when the row comes and when it goes, and too large to be kept between. */
  terms(): readonly string[] {
    return termsOf(this.event);
  }

  isSeenAt(view: Sequence): boolean {
    return this.seq <= view && this.removedAt > view;
  }

  get isRemoved(): boolean {
    return this.removedAt !== notRemoved;
  }

  restore(): void {
    this.removedAt = notRemoved;
  }
}

/** A committed event read from disk: its header, and its text, parsed when somebody looks at tags or content. */
export interface DiskRow extends StoredRow, Entry, NostrEvent {
  readonly id: EventId;
  readonly created_at: number;
  readonly expiration: number | undefined;
  /** Whether the JSON text contains these bytes. */
  hasText(text: Buffer): boolean;
}

export type AnyRow = Row | DiskRow;

export const isExpired = (row: AnyRow, nowSeconds: number): boolean =>
  row.expiration !== undefined && row.expiration <= nowSeconds;

/** The row as an event to match: a disk row's text is parsed only when its tags or content are looked at. */
export const matchable = (row: AnyRow): NostrEvent => (row instanceof Row ? row.event : row);

export interface Removal {
  readonly seq: Sequence;
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly kind: number;
  readonly address: string | undefined;
  readonly cause: RemovalCause;
}

export type LogRecord =
  | { readonly type: "stored"; readonly row: AnyRow }
  | { readonly type: "removed"; readonly removal: Removal };

export interface LogPage {
  readonly records: readonly LogRecord[];
  /** There is nothing more up to here. */
  readonly reached: Sequence;
}

/** A page of the log that is being put together. */
export class LogPageDraft {
  readonly records: LogRecord[] = [];
  #bytes = 0;

  constructor(
    readonly max: number,
    readonly maxBytes: number,
  ) {}

  /** True when the page is full. */
  add(record: LogRecord): boolean {
    this.records.push(record);
    if (record.type === "stored") this.#bytes += record.row.size;
    return this.records.length >= this.max || this.#bytes >= this.maxBytes;
  }
}

/** An expiring event's place in the list that is ordered by expiration. */
export const expirationEntry = (row: Row): Entry | undefined =>
  row.expiration === undefined
    ? undefined
    : { time: row.expiration, idHigh: row.idHigh, idLow: row.idLow, seq: row.seq };

/**
 * The one order of answers (NIP-01): newest first, lower id first within a second. Index entries carry the first 64
 * bits of the id, as two numbers; two events of one second that agree in all of them are ordered by arrival.
 */
export interface Entry {
  readonly time: number;
  readonly idHigh: number;
  readonly idLow: number;
  readonly seq: number;
}

/** Negative when `a` is answered before `b`; zero only for the same stored event. */
export function compareEntries(a: Entry, b: Entry): number {
  return b.time - a.time || a.idHigh - b.idHigh || a.idLow - b.idLow || a.seq - b.seq;
}

export const idHighOf = (id: string): number => Number.parseInt(id.slice(0, 8), 16);
export const idLowOf = (id: string): number => Number.parseInt(id.slice(8, 16), 16);

/** A view that sees writes no commit has confirmed yet: the transaction's. */
export const pendingView = Number.MAX_SAFE_INTEGER;

/** Times beyond this (nine million years) all count as this one. */
export const maxTime = 2 ** 48 - 1;

/**
 * Index terms: every event is listed under some names, each list in NIP-01 order. A term is a string whose first
 * character is its type; backends may hash it, because candidates are matched again.
 */
export const everything = "*";
/** Events that expire, ordered by that time instead of their creation. */
export const expiring = "x";
/** Addressable events with several `d` tags: the first is their address, but all of them match `#d`. */
export const severalIdentifiers = "!";
export const ofKind = (kind: number): string => `k${kind}`;
export const ofAuthor = (pubkey: Pubkey): string => `p${pubkey}`;
export const ofAuthorAndKind = (pubkey: Pubkey, kind: number): string => `q${pubkey}${kind}`;
export const ofTag = (letter: string, value: string): string => `#${letter}${value}`;
export const isOfTag = (term: string): boolean => term[0] === "#";
/** Those of one kind under a tag: a pull request among a hundred thousand comments costs what is found. */
export const ofTagAndKind = (letter: string, value: string, kind: number): string => `&${letter}${kind}:${value}`;
export const isOfTagAndKind = (term: string): boolean => term[0] === "&";
/** How a tag that `ofTag` or `ofTagAndKind` made a term of begins in an event's JSON text. */
export const tagText = (term: string): string =>
  `["${term[1]}",${JSON.stringify(term.slice(isOfTagAndKind(term) ? term.indexOf(":") + 1 : 2))}`;

/**
 * What clients ask for by kind under a repository's address: patches, pull requests, issues and their status. Listed by
 * tag and kind too. Each kind or letter more costs every such event an entry.
 */
export const kindsUnderAddress: ReadonlySet<number> = new Set([1617, 1618, 1619, 1621, 1630, 1631, 1632, 1633]);
export const isListedByTagAndKind = (letter: string, kind: number): boolean =>
  letter === "a" && kindsUnderAddress.has(kind);
export const ofWord = (word: string): string => `w${searchStem(word)}`;

/** NIP-01: relays index tags of one letter. */
export const isIndexedTag = (name: string): boolean => name.length === 1 && /[A-Za-z]/.test(name);

/** A term may come twice (a tag that is repeated, words that begin alike): listing an event again changes nothing. */
export function termsOf(event: NostrEvent): string[] {
  const terms = [everything, ofKind(event.kind), ofAuthor(event.pubkey), ofAuthorAndKind(event.pubkey, event.kind)];
  for (const tag of event.tags) {
    const name = tag[0];
    const value = tag[1];
    if (name === undefined || value === undefined || !isIndexedTag(name)) continue;
    terms.push(ofTag(name, value));
    if (isListedByTagAndKind(name, event.kind)) terms.push(ofTagAndKind(name, value, event.kind));
  }
  if (isAddressable(event.kind) && tagValues(event, "d").length > 1) terms.push(severalIdentifiers);
  for (const word of searchableWords(event)) terms.push(ofWord(word));
  return terms;
}
