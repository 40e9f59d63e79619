// A stored event in memory, with the two numbers that say which readers see it: the change that stored it and, once
// it is removed, the change that removed it. A reader at position P sees what was stored up to P and not removed by P.

import { addressOf, addressText, expirationOf, type VerifiedEvent } from "../../nostr/event.js";
import type { EventId } from "../../nostr/ids.js";
import type { Sequence, StoredRow } from "../port.js";
import { type Entry, idHighOf, idLowOf, maxTime } from "./order.js";
import { termsOf } from "./terms.js";

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

  get size(): number {
    return this.event.raw.length;
  }

  get json(): Buffer {
    return Buffer.from(this.event.raw);
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

/** An expiring event's place in the list that is ordered by expiration. */
export const expirationEntry = (row: Row): Entry | undefined =>
  row.expiration === undefined
    ? undefined
    : { time: row.expiration, idHigh: row.idHigh, idLow: row.idLow, seq: row.seq };
