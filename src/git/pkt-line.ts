// pkt-lines: git's framing. Four hex digits of length (themselves included), then the payload; 0000 is a flush, 0001 a
// delimiter, 0002 a response end. Strict: anything else is an error, because what we do not understand git might
// (threats.md row 2).

export const maxPktBytes = 65_520;
const headerBytes = 4;

export type Pkt =
  | { readonly type: "data"; readonly payload: Buffer }
  | { readonly type: "flush" }
  | { readonly type: "delimiter" }
  | { readonly type: "response-end" };

export class PktError extends Error {
  override readonly name = "PktError";
}

export const flushPkt = Buffer.from("0000");
export const delimiterPkt = Buffer.from("0001");

export function encodePkt(payload: Buffer | string): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload, "utf8") : payload;
  const length = bytes.length + headerBytes;
  if (length > maxPktBytes) throw new RangeError("a pkt-line holds at most 65,516 bytes");
  return Buffer.concat([Buffer.from(length.toString(16).padStart(4, "0")), bytes], length);
}

/** Payload on a side band (1 data, 2 progress, 3 fatal), split over as many pkt-lines as it needs. */
export function encodeBand(band: 1 | 2 | 3, payload: Buffer | string): Buffer {
  const bytes = typeof payload === "string" ? Buffer.from(payload, "utf8") : payload;
  const most = maxPktBytes - headerBytes - 1;
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += most) {
    parts.push(encodePkt(Buffer.concat([Buffer.of(band), bytes.subarray(at, at + most)])));
  }
  return Buffer.concat(parts);
}

const hexDigits = /^[0-9a-fA-F]{4}$/;

/** The pkt-line that begins at `at`, or undefined when it is not all there yet. Throws on bytes that begin none. */
export function readPkt(bytes: Buffer, at: number): { readonly pkt: Pkt; readonly end: number } | undefined {
  if (bytes.length - at < headerBytes) return undefined;
  const header = bytes.toString("latin1", at, at + headerBytes);
  if (!hexDigits.test(header)) throw new PktError("a pkt-line must begin with four hex digits");
  const length = Number.parseInt(header, 16);
  if (length === 0) return { pkt: { type: "flush" }, end: at + headerBytes };
  if (length === 1) return { pkt: { type: "delimiter" }, end: at + headerBytes };
  if (length === 2) return { pkt: { type: "response-end" }, end: at + headerBytes };
  if (length < headerBytes || length > maxPktBytes) throw new PktError(`a pkt-line cannot be ${length} bytes long`);
  if (bytes.length - at < length) return undefined;
  return { pkt: { type: "data", payload: bytes.subarray(at + headerBytes, at + length) }, end: at + length };
}

/** All pkt-lines of a complete message. Throws when bytes are left over. */
export function* readAllPkts(bytes: Buffer): Generator<Pkt> {
  let at = 0;
  while (at < bytes.length) {
    const read = readPkt(bytes, at);
    if (!read) throw new PktError("the last pkt-line is cut off");
    at = read.end;
    yield read.pkt;
  }
}

/** The same as a list, of one more than `most` at most: an object for each four bytes of a body costs many times the body. */
export function listPkts(bytes: Buffer, most: number): Pkt[] {
  const pkts: Pkt[] = [];
  for (const pkt of readAllPkts(bytes)) if (pkts.push(pkt) > most) break;
  return pkts;
}

/** Payload as text without the one newline git puts at the end of lines. */
export function lineOf(payload: Buffer): string {
  const end = payload.at(-1) === 0x0a ? payload.length - 1 : payload.length;
  return payload.toString("utf8", 0, end);
}
