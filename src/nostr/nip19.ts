// NIP-19: names for people (npub, nsec, note, nevent, naddr). Strict: one spelling for one thing, so that a name in a
// URL or a list cannot have twins. Decoding answers undefined for anything else; encoding refuses what cannot be said.

import { bech32 } from "@scure/base";
import { type Address, type EventId, isEventId, isPubkey, maxKind, type Pubkey } from "./event.js";
import { SecretKey } from "./keys.js";

/** NIP-19's advice; longer names are refused. */
const maxNameChars = 5000;

interface EventPointer {
  readonly id: EventId;
  readonly relays: readonly string[];
  readonly author: Pubkey | undefined;
  readonly kind: number | undefined;
}

interface AddressPointer {
  readonly address: Address;
  readonly relays: readonly string[];
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("hex");
const encode = (prefix: string, bytes: Uint8Array): string =>
  bech32.encode(prefix, bech32.toWords(bytes), maxNameChars);

function decode(prefix: string, text: string): Uint8Array | undefined {
  // Upper case is legal bech32, but a second spelling; mixed case is not legal, so looking at the prefix is enough.
  if (text.length > maxNameChars || !text.startsWith(`${prefix}1`)) return undefined;
  try {
    const decoded = bech32.decode(text as `${string}1${string}`, maxNameChars);
    return decoded.prefix === prefix ? bech32.fromWords(decoded.words) : undefined;
  } catch {
    return undefined; // @scure/base tells of a bad checksum or padding by throwing
  }
}

function decodeHex64(prefix: string, text: string): string | undefined {
  const bytes = decode(prefix, text);
  return bytes?.length === 32 ? hexOf(bytes) : undefined;
}

export const npubOf = (pubkey: Pubkey): string => encode("npub", Buffer.from(pubkey, "hex"));
export const parseNpub = (text: string): Pubkey | undefined => decodeHex64("npub", text) as Pubkey | undefined;

export const noteOf = (id: EventId): string => encode("note", Buffer.from(id, "hex"));
export const parseNote = (text: string): EventId | undefined => decodeHex64("note", text) as EventId | undefined;

export const nsecOf = (key: SecretKey): string => encode("nsec", key.exportBytes());
export function parseNsec(text: string): SecretKey | undefined {
  const bytes = decode("nsec", text);
  return bytes ? SecretKey.fromBytes(bytes) : undefined;
}

// Lists of type, length, value. Types are shared by nevent and naddr; the meaning of the first is not.
const tlv = { special: 0, relay: 1, author: 2, kind: 3 } as const;

/** Undefined when the bytes end inside an entry. Types nobody here knows are kept: NIP-19 says to ignore them. */
function readEntries(bytes: Uint8Array): Map<number, Uint8Array[]> | undefined {
  const entries = new Map<number, Uint8Array[]>();
  for (let at = 0; at < bytes.length; ) {
    const type = bytes[at];
    const length = bytes[at + 1];
    if (type === undefined || length === undefined || at + 2 + length > bytes.length) return undefined;
    const values = entries.get(type);
    const value = bytes.subarray(at + 2, at + 2 + length);
    if (values) values.push(value);
    else entries.set(type, [value]);
    at += 2 + length;
  }
  return entries;
}

function writeEntries(entries: readonly (readonly [type: number, value: Uint8Array])[]): Uint8Array | undefined {
  if (entries.some(([, value]) => value.length > 255)) return undefined;
  return Buffer.concat(entries.flatMap(([type, value]) => [Uint8Array.of(type, value.length), value]));
}

function encodeEntries(prefix: string, entries: readonly (readonly [number, Uint8Array])[]): string | undefined {
  const bytes = writeEntries(entries);
  // 8 bytes become 13 letters at most, plus prefix, separator and checksum.
  if (!bytes || Math.ceil((bytes.length * 8) / 5) + prefix.length + 7 > maxNameChars) return undefined;
  return encode(prefix, bytes);
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch {
    return undefined; // TextDecoder tells of bad UTF-8 by throwing
  }
}

function kindBytes(kind: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(kind);
  return bytes;
}

function kindOf(bytes: Uint8Array): number | undefined {
  if (bytes.length !== 4) return undefined;
  const kind = Buffer.from(bytes).readUInt32BE();
  return kind <= maxKind ? kind : undefined;
}

/** The only value of a type; undefined when there is none; false when there are two, which could be read two ways. */
function single(entries: Map<number, Uint8Array[]>, type: number): Uint8Array | undefined | false {
  const values = entries.get(type) ?? [];
  return values.length > 1 ? false : values[0];
}

interface Hints {
  readonly relays: readonly string[];
  readonly author: Pubkey | undefined;
  readonly kind: number | undefined;
}

function readHints(entries: Map<number, Uint8Array[]>): Hints | undefined {
  const relays = (entries.get(tlv.relay) ?? []).map(textOf);
  const authorBytes = single(entries, tlv.author);
  const kindEntry = single(entries, tlv.kind);
  if (authorBytes === false || kindEntry === false) return undefined;
  const author = authorBytes && hexOf(authorBytes);
  const kind = kindEntry && kindOf(kindEntry);
  if (author !== undefined && !isPubkey(author)) return undefined;
  if (kindEntry !== undefined && kind === undefined) return undefined;
  const texts = relays.filter((relay) => relay !== undefined);
  return texts.length === relays.length ? { relays: texts, author, kind } : undefined;
}

/** Undefined when a relay is longer than 255 bytes or the whole is too long. */
export function neventOf(pointer: EventPointer): string | undefined {
  return encodeEntries("nevent", [
    [tlv.special, Buffer.from(pointer.id, "hex")],
    ...pointer.relays.map((relay) => [tlv.relay, Buffer.from(relay)] as const),
    ...(pointer.author === undefined ? [] : [[tlv.author, Buffer.from(pointer.author, "hex")] as const]),
    ...(pointer.kind === undefined ? [] : [[tlv.kind, kindBytes(pointer.kind)] as const]),
  ]);
}

export function parseNevent(text: string): EventPointer | undefined {
  const bytes = decode("nevent", text);
  const entries = bytes && readEntries(bytes);
  const idBytes = entries && single(entries, tlv.special);
  const hints = entries && readHints(entries);
  if (!idBytes || !hints) return undefined;
  const id = hexOf(idBytes);
  return isEventId(id) ? { id, ...hints } : undefined;
}

/** Undefined when the identifier or a relay is longer than 255 bytes, the identifier no valid Unicode, or the whole too long. */
export function naddrOf({ address, relays }: AddressPointer): string | undefined {
  if (!address.identifier.isWellFormed()) return undefined;
  return encodeEntries("naddr", [
    [tlv.special, Buffer.from(address.identifier)],
    ...relays.map((relay) => [tlv.relay, Buffer.from(relay)] as const),
    [tlv.author, Buffer.from(address.pubkey, "hex")],
    [tlv.kind, kindBytes(address.kind)],
  ]);
}

export function parseNaddr(text: string): AddressPointer | undefined {
  const bytes = decode("naddr", text);
  const entries = bytes && readEntries(bytes);
  const identifierBytes = entries && single(entries, tlv.special);
  const hints = entries && readHints(entries);
  if (!identifierBytes || hints?.author === undefined || hints.kind === undefined) return undefined;
  const identifier = textOf(identifierBytes);
  if (identifier === undefined) return undefined;
  return { address: { kind: hints.kind, pubkey: hints.author, identifier }, relays: hints.relays };
}
