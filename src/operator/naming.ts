// How operators name things: keys, repositories, events, relays and networks, in every spelling people paste, and how
// answers write them. Pure, and light enough for every verb to load.

import { sizeText } from "../base/text.js";
import { type RepositoryName, underPrs } from "../catalogue/repositories.js";
import {
  hostName,
  type ListEntry,
  listEntry,
  type Network,
  network,
  publicKey,
  readValue,
  type ServiceEntry,
} from "../config/value-kinds.js";
import { normalRelayUrl, type RelayUrl, servicePart } from "../net/url.js";
import { type EventId, isEventId, kinds, type Pubkey, parseAddress } from "../nostr/event.js";
import { npubOf, parseNaddr, parseNevent, parseNote } from "../nostr/nip19.js";

const withoutScheme = (text: string): string => text.trim().replace(/^nostr:/, "");

export const keyNamed = (text: string): Pubkey | undefined =>
  readValue(publicKey(), withoutScheme(text)) as Pubkey | undefined;

/** 64 hex digits, note or nevent. */
export function eventNamed(text: string): EventId | undefined {
  const name = withoutScheme(text);
  if (isEventId(name)) return name;
  return parseNote(name) ?? parseNevent(name)?.id;
}

/** npub/identifier, naddr, or the address events write (`30617:key:identifier`). */
export function repositoryNamedBy(text: string): RepositoryName | undefined {
  const name = withoutScheme(text);
  const address = parseNaddr(name)?.address ?? parseAddress(name);
  if (address) {
    const isRepository = address.kind === kinds.announcement || address.kind === kinds.state;
    return isRepository && address.identifier !== ""
      ? { owner: address.pubkey, identifier: address.identifier }
      : undefined;
  }
  const entry = entryNamed(name);
  return entry?.type === "repository" ? { owner: entry.pubkey, identifier: entry.identifier } : undefined;
}

/** The same, or `prs/npub/identifier` for one under `/prs/`. */
export function placeNamedBy(text: string): RepositoryName | undefined {
  const below = /^\/?prs\/(.+)$/.exec(text.trim())?.[1];
  const found = repositoryNamedBy(below ?? text);
  return found && below !== undefined ? underPrs(found) : found;
}

/** An entry of a white- or blacklist. */
export function entryNamed(text: string): ListEntry | undefined {
  const name = withoutScheme(text);
  const pointed = parseNaddr(name)?.address;
  if (pointed) return { type: "repository", pubkey: pointed.pubkey, identifier: pointed.identifier };
  return readValue(listEntry(), name);
}

/** A GRASP service as `host[:port]`, also taken from its URL. */
export function serviceNamed(text: string): ServiceEntry | undefined {
  const name = text.trim();
  const place = servicePart(name)?.split("/")[0] ?? name;
  const host = readValue(hostName(), place);
  return host === undefined ? undefined : { type: "service", host };
}

/** `wss://host[:port][/path]`; the scheme may be left out. */
export const relayNamed = (text: string): RelayUrl | undefined =>
  normalRelayUrl(text.includes("://") ? text.trim() : `wss://${text.trim()}`);

/** The key a relay is listed by (host, port and path), also taken from its URL. */
export function relayKeyNamed(text: string): string | undefined {
  const name = text.trim();
  const url = normalRelayUrl(/^wss?:\/\//i.test(name) ? name : `wss://${name}`);
  return url && servicePart(url);
}

export const networkNamed = (text: string): Network | undefined => readValue(network(), text.trim());

/** `192.0.2.1`, or `10.0.0.0/8` where it is more than one address. */
export const networkText = ({ address, prefixBits }: Network): string =>
  prefixBits === (address.includes(":") ? 128 : 32) ? address.toLowerCase() : `${address.toLowerCase()}/${prefixBits}`;

/** What `placeNamedBy` reads back; an identifier with odd characters is percent-encoded. */
export const repositoryText = ({ owner, identifier, area }: RepositoryName): string =>
  `${area === "prs" ? "prs/" : ""}${npubOf(owner)}/${identifierText(identifier)}`;

const identifierText = (identifier: string): string =>
  /^[^\x00-\x20\x7f-\x9f%,]+$/.test(identifier) ? identifier : encodeURIComponent(identifier);

export function entryText(entry: ListEntry | ServiceEntry): string {
  if (entry.type === "service") return entry.host;
  if (entry.type === "author") return npubOf(entry.pubkey);
  if (entry.type === "identifier") return identifierText(entry.identifier);
  return repositoryText({ owner: entry.pubkey, identifier: entry.identifier });
}

export interface RefDifference {
  readonly ref: string;
  /** null: not there. */
  readonly here: string | null;
  readonly signed: string | null;
  /** The state is recorded as partial and this ref is known to be missing: expected, and looked for. */
  readonly recorded: boolean;
}

export function differenceText({ ref, here, signed, recorded }: RefDifference): string {
  const short = (oid: string | null): string => (oid === null ? "absent" : oid.slice(0, 12));
  const note = recorded ? " (recorded as missing)" : "";
  return `${ref} is ${short(here)}, the newest signed state says ${short(signed)}${note}`;
}

interface Tidied {
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  readonly objectBytesBefore: number;
  readonly objectBytesAfter: number;
}

/** Whoever tidies expects less: what became more is explained. */
export function growthSentences({ bytesBefore, bytesAfter, objectBytesBefore, objectBytesAfter }: Tidied): string[] {
  if (bytesAfter <= bytesBefore) return [];
  const objects = objectBytesAfter - objectBytesBefore;
  const indexes = bytesAfter - bytesBefore - objects;
  return [
    ...(indexes > 0 ? [`${sizeText(indexes)} more are indexes and bitmaps, which make clones and pages quicker`] : []),
    ...(objects > 0
      ? [`${sizeText(objects)} more are objects that lay outside of packs, or were pushed meanwhile`]
      : []),
  ];
}
