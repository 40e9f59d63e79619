// Negentropy v1 on the wire (NIP-77): varints, bounds and ids. The reader answers undefined for anything malformed
// and never throws: what it reads comes from strangers.

export const protocolVersion = 0x61;
export const idBytes = 32;
export const fingerprintBytes = 16;
export const mode = { skip: 0, fingerprint: 1, idList: 2 } as const;

/** The end of a range: everything before `time`, or at `time` with an id before `prefix`. `time` may be Infinity. */
export interface Bound {
  readonly time: number;
  readonly prefix: Uint8Array;
}

const noPrefix = new Uint8Array(0);
export const firstBound: Bound = { time: 0, prefix: noPrefix };
export const lastBound: Bound = { time: Number.POSITIVE_INFINITY, prefix: noPrefix };
export const boundAt = (time: number, prefix: Uint8Array = noPrefix): Bound => ({ time, prefix });

/** Whether `a` lies before `b`. */
export function isBefore(a: Bound, b: Bound): boolean {
  return a.time === b.time ? Buffer.compare(a.prefix, b.prefix) < 0 : a.time < b.time;
}

const maxVarintBytes = 8;

export class WireReader {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** Times are differences to the one before. */
  #time = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get atEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  byte(): number | undefined {
    return this.#bytes[this.#at++];
  }

  /** Seven bits a byte, most significant first. Undefined beyond 2^53: no such time or count exists. */
  varint(): number | undefined {
    let value = 0;
    for (let read = 0; read < maxVarintBytes; read++) {
      const byte = this.byte();
      if (byte === undefined) return undefined;
      value = value * 128 + (byte & 127);
      if (byte < 128) return value <= Number.MAX_SAFE_INTEGER ? value : undefined;
    }
    return undefined;
  }

  /** A view, not a copy. */
  bytes(length: number): Uint8Array | undefined {
    const end = this.#at + length;
    if (end > this.#bytes.length) return undefined;
    const view = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return view;
  }

  bound(): Bound | undefined {
    const encoded = this.varint();
    const length = this.varint();
    if (encoded === undefined || length === undefined || length > idBytes) return undefined;
    const time = encoded === 0 ? Number.POSITIVE_INFINITY : this.#time + encoded - 1;
    if (time > Number.MAX_SAFE_INTEGER && (encoded !== 0 || length > 0)) return undefined;
    this.#time = time;
    const prefix = this.bytes(length);
    return prefix && { time, prefix };
  }
}

/** A place in the output to go back to. */
interface WireMark {
  readonly length: number;
  readonly time: number;
}

export class WireWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #length = 0;
  #time = 0;

  get length(): number {
    return this.#length;
  }

  mark(): WireMark {
    return { length: this.#length, time: this.#time };
  }

  rewind(mark: WireMark): void {
    this.#length = mark.length;
    this.#time = mark.time;
  }

  byte(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  varint(value: number): void {
    let bytes = 1;
    for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes++;
    this.#reserve(bytes);
    let rest = value;
    for (let at = bytes - 1; at >= 0; at--) {
      this.#bytes[this.#length + at] = (rest % 128) + (at === bytes - 1 ? 0 : 128);
      rest = Math.floor(rest / 128);
    }
    this.#length += bytes;
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  hex(text: string): void {
    this.#reserve(text.length / 2);
    this.#length += this.#bytes.write(text, this.#length, "hex");
  }

  bound({ time, prefix }: Bound): void {
    this.varint(time === Number.POSITIVE_INFINITY ? 0 : time - this.#time + 1);
    this.#time = time;
    this.varint(prefix.length);
    this.bytes(prefix);
  }

  /** A copy of what was written. */
  finish(): Uint8Array {
    return Uint8Array.from(this.#bytes.subarray(0, this.#length));
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + more));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }
}

/** A NEG message as NIP-77 sends it. Undefined unless it is an even number of hex digits (Buffer would cut silently). */
export function messageFromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0) return undefined;
  const bytes = Buffer.from(text, "hex");
  return bytes.length * 2 === text.length ? bytes : undefined;
}

export const messageToHex = (message: Uint8Array): string =>
  Buffer.from(message.buffer, message.byteOffset, message.length).toString("hex");
