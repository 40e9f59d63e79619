// What lies on disk, in bytes. Binary keys: an index entry is all key and no value:
//   type (1) · hash of the term (8) · newest-first time (6) · beginning of the id (8) · sequence (6)
// Hashes are seeded per database; a collision only adds candidates, which are matched again.
// Records of the log. An event: a header of fixed size, so that ids, authors, kinds and times are read without parsing,
// then its text. A removal: JSON.
// Side tables: table number, then the key's UTF-8 bytes. Table 0 is the store's own: its counters and marks.

import * as crypto from "node:crypto";
import type { Database as LmdbTable } from "lmdb";
import { type EventId, eventFromStoredText, type Pubkey, type Tag, type VerifiedEvent } from "../../nostr/event.js";
import type { Applied, EngineTable } from "../engine/backend.js";
import { type DiskRow, type Entry, maxTime, ofTag, type Removal, type Row } from "../engine/row.js";
import type { RowRange, Sequence } from "../port.js";

/** As much of the database as side tables need. */
interface WithRows {
  readonly rows: LmdbTable<Buffer, Uint8Array>;
}

// Numbers are on disk: they never change, new tables get new ones.
const tableNumbers: Readonly<Record<EngineTable, number>> = {
  deletions: 1,
  purgatory: 2,
  remembered: 3,
  decisions: 4,
  catalogue: 5,
  journal: 6,
  lists: 7,
  bans: 8,
  naughty: 9,
  audit: 10,
  meta: 11,
  refs: 12,
  aligned: 13,
  tokens: 14,
  lfs: 15,
  packs: 16,
};

export function emptyTables(database: WithRows): Set<EngineTable> {
  const tables = Object.keys(tableNumbers) as EngineTable[];
  return new Set(tables.filter((table) => rowsInRange(database, table, { limit: 1 }).length === 0));
}

type MetaKey = "events" | "forgottenUpTo" | "indexedUpTo" | "seed" | "upgrading-from" | "version";

const rowKey = (table: number, key: string): Buffer => {
  const bytes = Buffer.allocUnsafe(1 + Buffer.byteLength(key));
  bytes[0] = table;
  bytes.write(key, 1);
  return bytes;
};

const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

export function metaNumber(database: WithRows, key: MetaKey): number | undefined {
  const value = database.rows.getBinary(rowKey(0, key));
  return value && Number(text(value));
}

export function setMeta(database: WithRows, key: MetaKey, value: number): void {
  database.rows.put(rowKey(0, key), Buffer.from(String(value)));
}

/** How far a view of a shared log has come: `<n> <token>`. */
const appliedKey = rowKey(0, "applied");

export function appliedIn(database: WithRows): Applied | undefined {
  const value = database.rows.getBinary(appliedKey);
  const [n, token] = value ? text(value).split(" ") : [];
  return n !== undefined && token !== undefined ? { n: Number(n), token } : undefined;
}

export function setApplied(database: WithRows, { n, token }: Applied): void {
  database.rows.put(appliedKey, Buffer.from(`${n} ${token}`));
}

export function forgetApplied(database: WithRows): void {
  database.rows.remove(appliedKey);
}

export function rowText(database: WithRows, table: EngineTable, key: string): string | undefined {
  const value = database.rows.getBinary(rowKey(tableNumbers[table], key));
  return value && text(value);
}

export function setRowText(database: WithRows, table: EngineTable, key: string, value: string | undefined): void {
  const place = rowKey(tableNumbers[table], key);
  if (value === undefined) database.rows.remove(place);
  else database.rows.put(place, Buffer.from(value));
}

export function rowsInRange(
  database: WithRows,
  table: EngineTable,
  { prefix = "", after, reverse = false, limit }: RowRange & { readonly limit: number },
): [string, string][] {
  const number = tableNumbers[table];
  const first = rowKey(number, prefix);
  // UTF-8 has no byte 0xff: this key is behind all that begin with the prefix.
  const last = Buffer.concat([first, Buffer.of(0xff)]);
  const place = after === undefined ? undefined : rowKey(number, after);
  const found: [string, string][] = [];
  const range = reverse
    ? {
        start: place && Buffer.compare(place, last) < 0 ? place : last,
        end: first,
        inclusiveEnd: true,
        reverse: true,
        limit: limit + 1,
      }
    : { start: place && Buffer.compare(place, first) > 0 ? place : first, end: last, limit: limit + 1 };
  for (const { key, value } of database.rows.getRange(range)) {
    if (place && Buffer.compare(key, place) === 0) continue;
    if (found.length === limit) break;
    found.push([text(key.subarray(1)), text(value)]);
  }
  return found;
}

export const seqBytes = 6;
export const termBytes = 9;
export const entryBytes = termBytes + 6 + 8 + seqBytes;

export interface TermKey {
  readonly type: number;
  readonly high: number;
  readonly low: number;
}

/** The characters of a term behind its type, in two 32-bit lanes. */
export const termKeyOf = (term: string, seed: number): TermKey =>
  hashed(term.charCodeAt(0) & 0xff, term, 1, firstHigh ^ seed, firstLow ^ Math.imul(seed, 0x9e3779b1));

/** The key of `ofTag(letter, value)` without making that text: it is asked for by the thousand. */
export function tagKeyOf(letter: string, value: string, seed: number): TermKey {
  let high = firstHigh ^ seed;
  let low = firstLow ^ Math.imul(seed, 0x9e3779b1);
  for (let index = 0; index < letter.length; index++) {
    const unit = letter.charCodeAt(index);
    high = nextHigh(high, unit);
    low = nextLow(low, unit);
  }
  return hashed(tagType, value, 0, high, low);
}

const tagType = ofTag("", "").charCodeAt(0);
const firstHigh = 0xdeadbeef;
const firstLow = 0x41c6ce57;

function nextHigh(lane: number, unit: number): number {
  const mixed = Math.imul(lane ^ unit, 2_654_435_761);
  return (mixed << 13) | (mixed >>> 19);
}

function nextLow(lane: number, unit: number): number {
  const mixed = Math.imul(lane ^ unit, 1_597_334_677);
  return (mixed << 15) | (mixed >>> 17);
}

function hashed(type: number, text: string, from: number, highFrom: number, lowFrom: number): TermKey {
  let high = highFrom;
  let low = lowFrom;
  for (let index = from; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    high = nextHigh(high, unit);
    low = nextLow(low, unit);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return { type, high: high >>> 0, low: low >>> 0 };
}

export function writeTerm(key: Buffer, term: TermKey): void {
  key[0] = term.type;
  key.writeUInt32BE(term.high, 1);
  key.writeUInt32BE(term.low, 5);
}

/** A term as the key of an entry begins with it. */
export const readTerm = (bytes: Uint8Array, start: number): TermKey => ({
  type: bytes[start] as number,
  high: word(bytes, start + 1),
  low: word(bytes, start + 5),
});

/** Writes the key of an entry whose term is already there. */
export function writeEntry(key: Buffer, entry: Entry): void {
  writeTime(key, entry.time);
  key.writeUInt32BE(entry.idHigh, termBytes + 6);
  key.writeUInt32BE(entry.idLow, termBytes + 10);
  writeSeq(key, entry.seq, termBytes + 14);
}

export function writeTime(key: Buffer, time: number): void {
  writeSeq(key, maxTime - Math.min(time, maxTime), termBytes);
}

export function writeSeq(key: Buffer, seq: Sequence, offset: number): void {
  key.writeUInt16BE(Math.floor(seq / 2 ** 32), offset);
  key.writeUInt32BE(seq >>> 0, offset + 2);
}

const word = (bytes: Uint8Array, offset: number): number =>
  (((bytes[offset] as number) << 24) |
    ((bytes[offset + 1] as number) << 16) |
    ((bytes[offset + 2] as number) << 8) |
    (bytes[offset + 3] as number)) >>>
  0;

export const readSeq = (bytes: Uint8Array, offset: number): Sequence =>
  (((bytes[offset] as number) << 8) | (bytes[offset + 1] as number)) * 2 ** 32 + word(bytes, offset + 2);

/** The entry whose key begins at `start`. */
export const readEntry = (bytes: Uint8Array, start: number): Entry => ({
  time: maxTime - readSeq(bytes, start + termBytes),
  idHigh: word(bytes, start + termBytes + 6),
  idLow: word(bytes, start + termBytes + 10),
  seq: readSeq(bytes, start + termBytes + 14),
});

export function seqKey(seq: Sequence): Buffer {
  const key = Buffer.allocUnsafe(seqBytes);
  writeSeq(key, seq, 0);
  return key;
}

/** Identifiers may be longer than keys. */
export const addressKey: (address: string) => Buffer =
  typeof crypto.hash === "function"
    ? (address) => crypto.hash("sha256", address, "buffer")
    : (address) => crypto.createHash("sha256").update(address).digest();

const storedType = 1;
const removedType = 2;
export const idOffset = 1;
export const idEnd = 33;
const pubkeyEnd = 65;
const kindOffset = 65;
const timeOffset = 67;
const expirationOffset = 75;
const headerBytes = 83;
const noExpiration = -1;

export function encodeRow(row: Row): Buffer {
  const { event } = row;
  const record = Buffer.allocUnsafe(headerBytes + Buffer.byteLength(event.raw));
  record[0] = storedType;
  record.write(event.id, idOffset, "hex");
  record.write(event.pubkey, idEnd, "hex");
  record.writeUInt16BE(event.kind, kindOffset);
  record.writeDoubleBE(event.created_at, timeOffset);
  record.writeDoubleBE(row.expiration ?? noExpiration, expirationOffset);
  record.write(event.raw, headerBytes);
  return record;
}

export function encodeRemoval({ seq: _key, ...removal }: Removal): Buffer {
  return Buffer.concat([Buffer.of(removedType), Buffer.from(JSON.stringify(removal))]);
}

export const isRemoval = (record: Uint8Array): boolean => record[0] === removedType;

export function decodeRemoval(seq: Sequence, record: Buffer): Removal {
  const removal = JSON.parse(record.toString("utf8", 1)) as Omit<Removal, "seq">;
  return { ...removal, seq, address: removal.address };
}

/** A row as it lies in the log; everything is decoded when it is asked for. */
export class LogRow implements DiskRow {
  #event: VerifiedEvent | undefined;

  constructor(
    readonly seq: Sequence,
    readonly record: Buffer,
  ) {}

  get created_at(): number {
    return this.record.readDoubleBE(timeOffset);
  }

  get time(): number {
    return Math.min(this.created_at, maxTime);
  }

  get id(): EventId {
    return this.record.toString("hex", idOffset, idEnd) as EventId;
  }

  get pubkey(): Pubkey {
    return this.record.toString("hex", idEnd, pubkeyEnd) as Pubkey;
  }

  get kind(): number {
    return this.record.readUInt16BE(kindOffset);
  }

  get idHigh(): number {
    return this.record.readUInt32BE(idOffset);
  }

  get idLow(): number {
    return this.record.readUInt32BE(idOffset + 4);
  }

  get expiration(): number | undefined {
    // Most events have none, and -1 is known by its sign.
    if ((this.record[expirationOffset] as number) >= 0x80) return undefined;
    return this.record.readDoubleBE(expirationOffset);
  }

  get tags(): readonly Tag[] {
    return this.event.tags;
  }

  get content(): string {
    return this.event.content;
  }

  get sig(): string {
    return this.event.sig;
  }

  get raw(): string {
    return this.event.raw;
  }

  get size(): number {
    return this.record.length - headerBytes;
  }

  get json(): Buffer {
    return this.record.subarray(headerBytes);
  }

  get text(): Buffer {
    return this.json;
  }

  hasText(text: Buffer): boolean {
    return this.record.includes(text, headerBytes);
  }

  get event(): VerifiedEvent {
    this.#event ??= eventFromStoredText(this.record.toString("utf8", headerBytes));
    return this.#event;
  }
}
