// Kinds of values: numbers with units, switches, choices, texts, addresses, keys, repositories, networks, and lists of
// these. Each reads text and says what it wants. Lists are separated by commas; an identifier that itself has a comma is
// written percent-encoded.

import { isIP, isIPv6 } from "node:net";
import { bech32 } from "@scure/base";
import type { Brand } from "../base/brand.js";
import type { Reading, ValueKind } from "./setting.js";

/** Makes a kind from a function that answers undefined for text it cannot read. */
export function kindOf<T>(
  words: string,
  read: (text: string) => T | undefined,
  more: Partial<Omit<ValueKind<T>, "words" | "read">> = {},
): ValueKind<T> {
  return {
    words,
    read(text) {
      const value = read(text.trim());
      return value === undefined ? { ok: false, faults: [`must be ${words}`] } : { ok: true, value };
    },
    ...more,
  };
}

/** The value, or undefined where the text is none of this kind. */
export function readValue<T>(kind: ValueKind<T>, text: string): T | undefined {
  const reading = kind.read(text);
  return reading.ok ? reading.value : undefined;
}

interface Range {
  readonly min?: number;
  readonly max?: number;
}

const rangeWords = ({ min = 0, max = Number.MAX_SAFE_INTEGER }: Range): string =>
  max === Number.MAX_SAFE_INTEGER ? `, ${min} or more` : ` from ${min} to ${max}`;

const inRange = (value: number, { min = 0, max = Number.MAX_SAFE_INTEGER }: Range): number | undefined =>
  Number.isSafeInteger(value) && value >= min && value <= max ? value : undefined;

export function wholeNumber(range: Range = {}): ValueKind<number> {
  return kindOf(`a whole number${rangeWords(range)}`, (text) =>
    /^\d{1,16}$/.test(text) ? inRange(Number(text), range) : undefined,
  );
}

export const percent = (): ValueKind<number> =>
  kindOf(
    "a whole number from 1 to 100",
    (text) => inRange(/^\d{1,3}$/.test(text) ? Number(text) : 0, { min: 1, max: 100 }),
    {
      unit: "PERCENT",
    },
  );

const durationMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function duration(
  unit: "MS" | "SECS" | "HOURS" | "DAYS",
  name: string,
  unitMs: number,
  range: Range,
): ValueKind<number> {
  const words = `a whole number of ${name}${rangeWords(range)} (or with a unit: 500ms, 30s, 15m, 12h, 7d)`;
  const read = (text: string): number | undefined => {
    const match = /^(\d{1,13})(ms|s|m|h|d)?$/.exec(text);
    if (!match) return undefined;
    return inRange((Number(match[1]) * (match[2] ? (durationMs[match[2]] ?? 0) : unitMs)) / unitMs, range);
  };
  return kindOf(words, read, { unit });
}

export const milliseconds = (range: Range = {}): ValueKind<number> => duration("MS", "milliseconds", 1, range);
export const seconds = (range: Range = {}): ValueKind<number> => duration("SECS", "seconds", 1000, range);
export const hours = (range: Range = {}): ValueKind<number> => duration("HOURS", "hours", 3_600_000, range);
export const days = (range: Range = {}): ValueKind<number> => duration("DAYS", "days", 86_400_000, range);

const byteUnits: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

export function bytes(range: Range = { min: 1 }): ValueKind<number> {
  const read = (text: string): number | undefined => {
    const match = /^(\d{1,16}) ?([a-z]{0,3})$/i.exec(text);
    const unit = byteUnits[match?.[2]?.toLowerCase() ?? ""];
    return match && unit !== undefined ? inRange(Number(match[1]) * unit, range) : undefined;
  };
  return kindOf(`a number of bytes${rangeWords(range)} (units: kB, MB, GB, KiB, MiB, GiB, TiB)`, read, {
    unit: "BYTES",
  });
}

export const bytesPerSecond = (range?: Range): ValueKind<number> => ({ ...bytes(range), unit: "BYTES_PER_SEC" });

const switchWords: Readonly<Record<string, boolean>> = {
  true: true,
  "1": true,
  yes: true,
  on: true,
  false: false,
  "0": false,
  no: false,
  off: false,
};

/** From one full hour to another, UTC; over midnight where the second is the smaller. */
export const hoursOfDay = (): ValueKind<{ readonly from: number; readonly to: number }> =>
  kindOf("two hours of the day, such as 2-6", (text) => {
    const [, from, to] = /^(\d{1,2})-(\d{1,2})$/.exec(text) ?? [];
    const hoursOf = { from: Number(from), to: Number(to) };
    return hoursOf.from < 24 && hoursOf.to <= 24 && hoursOf.from !== hoursOf.to % 24 ? hoursOf : undefined;
  });

export const onOff = (): ValueKind<boolean> =>
  kindOf("true or false", (text) => switchWords[text.toLowerCase()], { isSwitch: true });

export function oneOf<const Choice extends string>(choices: readonly Choice[]): ValueKind<Choice> {
  return kindOf(`one of ${choices.join(", ")}`, (text) => choices.find((choice) => choice === text));
}

const controlCharacter = /[\x00-\x1f\x7f]/;

export const text = (maxCharacters = 1000): ValueKind<string> =>
  kindOf(`one line of text, at most ${maxCharacters} characters`, (value) =>
    value.length <= maxCharacters && !controlCharacter.test(value) ? value : undefined,
  );

/** Without spaces, as names and keys of other services are. */
export const visible = (maxCharacters: number): ValueKind<string> =>
  kindOf(`1 to ${maxCharacters} visible characters without spaces`, (value) =>
    /^[\x21-\x7e]+$/.test(value) && value.length <= maxCharacters ? value : undefined,
  );

export const token = (): ValueKind<string> =>
  kindOf("16 to 256 visible characters without spaces", (value) =>
    /^[\x21-\x7e]{16,256}$/.test(value) ? value : undefined,
  );

export const path = (): ValueKind<string> =>
  kindOf("a path", (value) => (controlCharacter.test(value) ? undefined : value));

/** An address to listen on. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export const hostPortText = ({ host, port }: HostPort): string => `${isIPv6(host) ? `[${host}]` : host}:${port}`;

export const hostPort = (): ValueKind<HostPort> =>
  kindOf("address:port, for instance 127.0.0.1:7334 or [::]:7334", (value) => {
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value);
    const host = match?.[1] ?? match?.[2];
    const port = Number(match?.[3]);
    if (!host || port > 65_535 || (match?.[1] !== undefined && !isIPv6(host))) return undefined;
    return isIP(host) !== 0 || host === "localhost" ? { host, port } : undefined;
  });

/** `host[:port][/base]` as in a public URL, without scheme. The host's case does not matter, the path's does. */
export const domain = (): ValueKind<string> =>
  kindOf("host, host:port or host:port/base, without a scheme, for instance git.example.com", (value) => {
    const match = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{1,5})?((?:\/[a-z0-9._~-]+)*)\/?$/i.exec(value);
    if (!match || !tryUrl(`http://${value}`)) return undefined;
    return `${match[1]?.toLowerCase()}${match[2] ?? ""}${match[3] ?? ""}`;
  });

/** `/base` as it stands in the public URL; `/` is none. */
export const basePath = (): ValueKind<string> =>
  kindOf("a path such as /base, or / for none", (value) => {
    const match = /^\/?((?:[a-z0-9._~-]+\/)*[a-z0-9._~-]*)$/i.exec(value);
    if (!match || value === "" || /(?:^|\/)\.{1,2}(?:\/|$)/.test(value)) return undefined;
    const path = (match[1] ?? "").replace(/\/$/, "");
    return path === "" ? "" : `/${path}`;
  });

function tryUrl(value: string): URL | undefined {
  try {
    return new URL(value);
  } catch {
    return undefined;
  }
}

function urlOf(schemes: readonly string[], value: string): string | undefined {
  if (/[\x00-\x20\x7f]/.test(value)) return undefined;
  const url = tryUrl(value);
  return url && schemes.includes(url.protocol) && url.hostname !== "" ? value : undefined;
}

export const webUrl = (): ValueKind<string> =>
  kindOf("an https:// or http:// URL", (value) => urlOf(["http:", "https:"], value));

/** Scheme, host and port alone. */
export const origin = (): ValueKind<string> =>
  kindOf("an origin: https:// or http://, a host and perhaps a port, nothing behind it", (value) => {
    const url = urlOf(["http:", "https:"], value) && tryUrl(value);
    const isBare = url && url.pathname === "/" && !/[?#@]/.test(value);
    return isBare ? url.origin : undefined;
  });

/** The host may stand behind it: `postgres:///database?host=/run/postgresql` names a socket of this machine. */
export const postgresUrl = (): ValueKind<string> =>
  kindOf("a postgres:// URL", (value) => {
    const [, scheme, rest] = /^(postgres(?:ql)?:\/\/)(\/.*)$/.exec(value) ?? [];
    const host = scheme && tryUrl(value)?.searchParams.get("host");
    return urlOf(["postgres:", "postgresql:"], host ? `${scheme}socket${rest}` : value) && value;
  });

/** It stands in statements as it is. */
export const schemaName = (): ValueKind<string> =>
  kindOf("a lower-case letter and then letters, digits and _, at most 63", (value) =>
    /^[a-z][a-z0-9_]{0,62}$/.test(value) ? value : undefined,
  );

export type PackPlace =
  | { readonly type: "directory"; readonly path: string }
  | { readonly type: "s3"; readonly bucket: string };

export const packPlace = (): ValueKind<PackPlace> =>
  kindOf("directory: and a path, or s3: and a bucket's name", (value) => {
    const [, kind, rest = ""] = /^(directory|s3):(.+)$/.exec(value) ?? [];
    if (kind === "directory" && !controlCharacter.test(rest)) return { type: "directory", path: rest };
    const isBucket = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(rest);
    return kind === "s3" && isBucket ? { type: "s3", bucket: rest } : undefined;
  });

/** A relay; the scheme may be left out and is then wss. */
export const relayUrl = (): ValueKind<string> =>
  kindOf("a relay URL (wss://host, ws://host or just host)", (value) => {
    const full = /^[a-z]+:\/\//i.test(value) ? value : `wss://${value}`;
    const url = tryUrl(full);
    return url?.username === "" && url.password === "" ? urlOf(["ws:", "wss:"], full) : undefined;
  });

/** The same proof as in the Nostr room: 64 lower-case hex digits. */
export type Pubkey = Brand<string, "Pubkey">;

export function listOf<T>(item: ValueKind<T>): ValueKind<readonly T[]> {
  const read = (text: string): Reading<readonly T[]> => {
    const value: T[] = [];
    const faults: string[] = [];
    for (const part of text.split(",").map((piece) => piece.trim())) {
      if (part === "") continue;
      const entry = item.read(part);
      if (entry.ok) value.push(entry.value);
      else faults.push(`each entry must be ${item.words}; ${JSON.stringify(part)} is not`);
    }
    return faults.length > 0 ? { ok: false, faults } : { ok: true, value };
  };
  return { words: `a comma-separated list; each entry ${item.words}`, read, acceptsEmpty: true };
}

function bech32Hex(prefix: "npub" | "nsec", text: string): string | undefined {
  const decoded = bech32.decodeUnsafe(text as `${string}1${string}`, 100);
  if (decoded?.prefix !== prefix) return undefined;
  const bytes = bech32.fromWordsUnsafe(decoded.words);
  return bytes?.length === 32 ? Buffer.from(bytes).toString("hex") : undefined;
}

function keyOf(text: string): Pubkey | undefined {
  const hex = /^[0-9a-fA-F]{64}$/.test(text) ? text.toLowerCase() : bech32Hex("npub", text);
  return hex as Pubkey | undefined;
}

export const publicKey = (): ValueKind<Pubkey> => kindOf("an npub or 64 hex digits", keyOf);

/** Where the server's secret key comes from. */
type SecretKeySource =
  | { readonly type: "key"; readonly secretHex: string }
  | { readonly type: "file"; readonly path: string };

/** Of secp256k1: secret keys are from 1 to one less. */
const curveOrder = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";

export function secretKeyHex(text: string): string | undefined {
  const hex = /^[0-9a-fA-F]{64}$/.test(text) ? text.toLowerCase() : bech32Hex("nsec", text);
  return hex !== undefined && /[^0]/.test(hex) && hex < curveOrder ? hex : undefined;
}

export const secretKey = (): ValueKind<SecretKeySource> =>
  kindOf("an nsec, 64 hex digits, or file: and a path", (text) => {
    if (text.startsWith("file:") && text.length > 5) return { type: "file", path: text.slice(5) };
    const secretHex = secretKeyHex(text);
    return secretHex === undefined ? undefined : { type: "key", secretHex };
  });

/** An entry of the white- and blacklists. */
export type ListEntry =
  | { readonly type: "author"; readonly pubkey: Pubkey }
  | { readonly type: "repository"; readonly pubkey: Pubkey; readonly identifier: string }
  | { readonly type: "identifier"; readonly identifier: string };

/** An entry of the list of GRASP services that are mirrored: `host`, or `host:port` for one service on it. */
export interface ServiceEntry {
  readonly type: "service";
  readonly host: string;
}

function identifierOf(text: string): string | undefined {
  try {
    const identifier = decodeURIComponent(text);
    return identifier === "" || identifier.includes("\0") ? undefined : identifier;
  } catch {
    return undefined;
  }
}

export const listEntry = (): ValueKind<ListEntry> =>
  kindOf("an npub, npub/identifier or identifier (hex keys are fine)", (text) => {
    const slash = text.indexOf("/");
    const key = keyOf(slash < 0 ? text : text.slice(0, slash));
    if (slash < 0 && key) return { type: "author", pubkey: key };
    // A mistyped npub must not silently become the name of a repository.
    if (!key && text.startsWith("npub1")) return undefined;
    const identifier = identifierOf(key ? text.slice(slash + 1) : text);
    if (identifier === undefined) return undefined;
    return key ? { type: "repository", pubkey: key, identifier } : { type: "identifier", identifier };
  });

export interface Network {
  readonly address: string;
  readonly prefixBits: number;
}

export const network = (): ValueKind<Network> =>
  kindOf("an IP address or CIDR network, for instance 10.0.0.0/8 or loopback", (text) => {
    const [address = "", bits, ...rest] = text.split("/");
    const version = isIP(address);
    if (version === 0 || rest.length > 0 || (bits !== undefined && !/^\d{1,3}$/.test(bits))) return undefined;
    const most = version === 4 ? 32 : 128;
    const prefixBits = bits === undefined ? most : Number(bits);
    return prefixBits <= most ? { address, prefixBits } : undefined;
  });

const loopback = "127.0.0.0/8,::1";

/** A list of networks in which `loopback` stands for 127.0.0.0/8 and ::1. */
export function networkList(): ValueKind<readonly Network[]> {
  const list = listOf(network());
  const spelledOut = (text: string): string =>
    text
      .split(",")
      .map((part) => (part.trim() === "loopback" ? loopback : part))
      .join(",");
  return { ...list, read: (text) => list.read(spelledOut(text)) };
}

interface DomainOverride {
  readonly host: string;
  readonly concurrent: number;
  readonly startsPerMinute: number;
}

export const domainOverride = (): ValueKind<DomainOverride> =>
  kindOf("host=concurrent/rate, for instance codeberg.org=10/60", (text) => {
    const match = /^([a-z0-9.\-_]+|\[[0-9a-f:.]+\])=([1-9]\d{0,3})\/([1-9]\d{0,5})$/i.exec(text);
    if (!match?.[1]) return undefined;
    return { host: match[1].toLowerCase(), concurrent: Number(match[2]), startsPerMinute: Number(match[3]) };
  });

export const hostName = (): ValueKind<string> =>
  kindOf("a host name, or host:port for one service on it", (text) =>
    /^[a-z0-9]([a-z0-9.\-_]*[a-z0-9])?(:\d{1,5})?$/i.test(text) ? text.toLowerCase() : undefined,
  );
