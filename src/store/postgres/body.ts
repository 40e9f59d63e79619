// The body of a change in the shared log, as bytes. The `format` of its row says how to read it; what format 1 looks like
// never changes, because logs and machines of earlier versions have it. Pure.
//   numbers are LEB128; texts are their length in bytes and UTF-8
//   start · position · writes · tables · passing events
//   write: 1 · number · text of the event; or 2 · number · number of the row that goes, or 0 · id (32) · author (32) · kind ·
//          cause · whether it had an address · address
//   table: name · rows; row: key · 0, or 1 · text

import { type EventId, eventFromStoredText, type Pubkey, type VerifiedEvent } from "../../nostr/event.js";
import type { EngineTable } from "../engine/backend.js";
import type { Effect, Effects } from "../engine/effects.js";
import type { RemovalCause } from "../port.js";

/** The newest format this program writes and reads. */
export const newestFormat = 1;
export const maxBodyBytes = 8 * 2 ** 20;

const storedType = 1;
const removedType = 2;

// Numbers are in logs: they never change, new causes get new ones.
const causeNumbers: Readonly<Record<RemovalCause, number>> = {
  replaced: 1,
  deletion: 2,
  vanish: 3,
  expiration: 4,
  ban: 5,
  unhosted: 6,
  operator: 7,
};
const causes = new Map(Object.entries(causeNumbers).map(([cause, number]) => [number, cause as RemovalCause]));

/** Undefined: it is longer than a change may be. */
export function encodeBody(effects: Effects, maxBytes = maxBodyBytes): Buffer | undefined {
  const writer = new BodyWriter(maxBytes);
  writer.number(effects.start);
  writer.number(effects.position);
  writer.number(effects.writes.length);
  for (const effect of effects.writes) writeEffect(writer, effect);
  writer.number(effects.tables.size);
  for (const [table, rows] of effects.tables) {
    writer.text(table);
    writer.number(rows.size);
    for (const [key, text] of rows) {
      writer.text(key);
      writer.number(text === undefined ? 0 : 1);
      if (text !== undefined) writer.text(text);
    }
  }
  writer.number(effects.passing.length);
  for (const event of effects.passing) writer.text(event.raw);
  return writer.bytes();
}

function writeEffect(writer: BodyWriter, effect: Effect): void {
  if (effect.type === "stored") {
    writer.number(storedType);
    writer.number(effect.seq);
    writer.text(effect.event.raw);
    return;
  }
  const { seq, id, pubkey, kind, cause, address } = effect.removal;
  writer.number(removedType);
  writer.number(seq);
  writer.number(effect.target ?? 0);
  writer.hex(id);
  writer.hex(pubkey);
  writer.number(kind);
  writer.number(causeNumbers[cause]);
  writer.number(address === undefined ? 0 : 1);
  if (address !== undefined) writer.text(address);
}

/** Throws a RangeError when the bytes are not what a machine of this format writes. */
export function decodeBody(format: number, body: Buffer): Effects {
  if (format !== 1) throw new RangeError(`changes of format ${format} cannot be read`);
  const reader = new BodyReader(body);
  const start = reader.number();
  const position = reader.number();
  const writes = reader.list(() => readEffect(reader));
  const tables = new Map(reader.list(() => [reader.text() as EngineTable, readRows(reader)] as const));
  const passing = reader.list((): VerifiedEvent => eventFromStoredText(reader.text()));
  reader.end();
  return { start, position, writes, tables, passing };
}

function readEffect(reader: BodyReader): Effect {
  const type = reader.number();
  const seq = reader.number();
  if (type === storedType) return { type: "stored", seq, event: eventFromStoredText(reader.text()) };
  if (type !== removedType) throw new RangeError(`a change has a write of unknown type ${type}`);
  const target = reader.number();
  const id = reader.hex() as EventId;
  const pubkey = reader.hex() as Pubkey;
  const kind = reader.number();
  const cause = causes.get(reader.number());
  if (!cause) throw new RangeError("a change removes an event for an unknown cause");
  const address = reader.number() === 1 ? reader.text() : undefined;
  const removal = { seq, id, pubkey, kind, address, cause };
  return { type: "removed", removal, target: target === 0 ? undefined : target };
}

const readRows = (reader: BodyReader): ReadonlyMap<string, string | undefined> =>
  new Map(reader.list(() => [reader.text(), reader.number() === 1 ? reader.text() : undefined] as const));

const hexBytes = 32;

class BodyWriter {
  #bytes: Buffer;
  #length = 0;
  #isTooLong = false;

  constructor(readonly maxBytes: number) {
    this.#bytes = Buffer.allocUnsafe(4_096);
  }

  number(value: number): void {
    if (!this.#makeRoom(8)) return;
    let left = value;
    while (left >= 0x80) {
      this.#bytes[this.#length++] = (left % 0x80) | 0x80;
      left = Math.floor(left / 0x80);
    }
    this.#bytes[this.#length++] = left;
  }

  text(text: string): void {
    const bytes = Buffer.byteLength(text);
    this.number(bytes);
    if (!this.#makeRoom(bytes)) return;
    this.#bytes.write(text, this.#length);
    this.#length += bytes;
  }

  hex(text: string): void {
    if (!this.#makeRoom(hexBytes)) return;
    this.#bytes.write(text, this.#length, "hex");
    this.#length += hexBytes;
  }

  bytes(): Buffer | undefined {
    return this.#isTooLong || this.#length > this.maxBytes ? undefined : this.#bytes.subarray(0, this.#length);
  }

  #makeRoom(bytes: number): boolean {
    const needed = this.#length + bytes;
    if (needed > this.maxBytes + 8) this.#isTooLong = true;
    if (this.#isTooLong) return false;
    if (needed > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2));
      this.#bytes.copy(larger, 0, 0, this.#length);
      this.#bytes = larger;
    }
    return true;
  }
}

class BodyReader {
  #at = 0;

  constructor(readonly body: Buffer) {}

  number(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.body[this.#at++];
      if (byte === undefined || scale > 2 ** 49) throw new RangeError("a change is cut short");
      value += (byte % 0x80) * scale;
      if (byte < 0x80) return value;
      scale *= 0x80;
    }
  }

  text(): string {
    const bytes = this.number();
    return this.#take(bytes).toString();
  }

  hex(): string {
    return this.#take(hexBytes).toString("hex");
  }

  list<T>(read: () => T): T[] {
    const count = this.number();
    // Each entry has at least one byte.
    if (count > this.body.length - this.#at) throw new RangeError("a change is cut short");
    return Array.from({ length: count }, read);
  }

  end(): void {
    if (this.#at !== this.body.length) throw new RangeError("a change has bytes behind its end");
  }

  #take(bytes: number): Buffer {
    const end = this.#at + bytes;
    if (end > this.body.length) throw new RangeError("a change is cut short");
    const taken = this.body.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
