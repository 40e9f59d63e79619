// Records of the log. An event: a header of fixed size, so that ids, authors, kinds and times are read without
// parsing, then its text. A removal: JSON.

import { eventFromStoredText, type Tag, type VerifiedEvent } from "../../nostr/event.js";
import type { EventId, Pubkey } from "../../nostr/ids.js";
import type { DiskRow, Removal } from "../engine/backend.js";
import { maxTime } from "../engine/order.js";
import type { Row } from "../engine/row.js";
import type { Sequence } from "../port.js";

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
