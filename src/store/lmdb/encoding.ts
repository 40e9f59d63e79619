// Bytes on disk. Binary keys: an index entry is all key and no value:
//   type (1) · hash of the term (8) · newest-first time (6) · beginning of the id (8) · sequence (6)
// Hashes are seeded per database; a collision only adds candidates, which are matched again.
// Records of the log. An event: a header of fixed size, so that ids, authors, kinds and times are read without parsing,
// then its text. A removal: JSON.

import * as crypto from "node:crypto";
import { eventFromStoredText, type Tag, type VerifiedEvent } from "../../nostr/event.js";
import type { EventId, Pubkey } from "../../nostr/ids.js";
import { type DiskRow, type Entry, maxTime, type Removal, type Row } from "../engine/row.js";
import type { Sequence } from "../port.js";

export const seqBytes = 6;
export const termBytes = 9;
export const entryBytes = termBytes + 6 + 8 + seqBytes;

interface TermKey {
  readonly type: number;
  readonly high: number;
  readonly low: number;
}

/** Two 32-bit lanes over the term's characters. */
export function termKeyOf(term: string, seed: number): TermKey {
  let high = 0xdeadbeef ^ seed;
  let low = 0x41c6ce57 ^ Math.imul(seed, 0x9e3779b1);
  for (let index = 1; index < term.length; index++) {
    const unit = term.charCodeAt(index);
    high = Math.imul(high ^ unit, 2_654_435_761);
    high = (high << 13) | (high >>> 19);
    low = Math.imul(low ^ unit, 1_597_334_677);
    low = (low << 15) | (low >>> 17);
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return { type: term.charCodeAt(0) & 0xff, high: high >>> 0, low: low >>> 0 };
}

export function writeTerm(key: Buffer, term: TermKey): void {
  key[0] = term.type;
  key.writeUInt32BE(term.high, 1);
  key.writeUInt32BE(term.low, 5);
}

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

  hasText(text: Buffer): boolean {
    return this.record.includes(text, headerBytes);
  }

  get event(): VerifiedEvent {
    this.#event ??= eventFromStoredText(this.record.toString("utf8", headerBytes));
    return this.#event;
  }
}
