// Kinds of values that name keys, repositories, networks and hosts, and lists of them.
// Lists are separated by commas; an identifier that itself has a comma is written percent-encoded.

import { isIP } from "node:net";
import { bech32 } from "@scure/base";
import { z } from "zod";
import type { Brand } from "../base/brand.js";
import { kindOf } from "./kinds.js";
import type { ValueKind } from "./setting.js";

/** The same proof as in the Nostr room: 64 lower-case hex digits. */
export type Pubkey = Brand<string, "Pubkey">;

export function listOf<T>(item: ValueKind<T>): ValueKind<readonly T[]> {
  const schema = z.string().transform((text, context): readonly T[] => {
    const values: T[] = [];
    for (const part of text.split(",").map((piece) => piece.trim())) {
      if (part === "") continue;
      const result = item.schema.safeParse(part);
      if (result.success) values.push(result.data);
      else
        context.addIssue({
          code: "custom",
          message: `each entry must be ${item.words}; ${JSON.stringify(part)} is not`,
        });
    }
    return values;
  });
  return { words: `a comma-separated list; each entry ${item.words}`, schema, acceptsEmpty: true };
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
export type SecretKeySource =
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
  const schema = z
    .string()
    .transform((text) =>
      text
        .split(",")
        .map((part) => (part.trim() === "loopback" ? loopback : part))
        .join(","),
    )
    .pipe(list.schema);
  return { ...list, schema };
}

export interface DomainOverride {
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
