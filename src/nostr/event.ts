// What an event is (NIP-01): its kind, its shape, its id and its author's key, the exact text we serve, the address it lives at
// (`kind:pubkey:identifier`), and what its tags say. No policy, no signatures.

import * as crypto from "node:crypto";
import type { Brand } from "../base/brand.js";
import { type Refusal, refuse } from "./refusals.js";

export type EventId = Brand<string, "EventId">;
export type Pubkey = Brand<string, "Pubkey">;

const hex64 = /^[0-9a-f]{64}$/;
const hex128 = /^[0-9a-f]{128}$/;

export const isEventId = (text: unknown): text is EventId => typeof text === "string" && hex64.test(text);
export const isPubkey = (text: unknown): text is Pubkey => typeof text === "string" && hex64.test(text);
export const isSignature = (text: unknown): text is string => typeof text === "string" && hex128.test(text);

/** Kinds this server knows by name (NIP-01, NIP-09, NIP-34 with its drafts for CI and packages, NIP-62, GRASP). */
export const kinds = {
  profile: 0,
  contacts: 3,
  deletion: 5,
  repost: 6,
  genericRepost: 16,
  vanish: 62,
  comment: 1111,
  patch: 1617,
  pullRequest: 1618,
  pullRequestUpdate: 1619,
  issue: 1621,
  coverNote: 1624,
  label: 1985,
  ciTrigger: 9840,
  ciJob: 9841,
  ciResult: 9842,
  ciRequest: 9843,
  ciStop: 9844,
  relayList: 10_002,
  graspList: 10_317,
  ciCoordinator: 19_843,
  ciReadiness: 19_844,
  auth: 22_242,
  httpAuth: 27_235,
  ciSecret: 29_846,
  announcement: 30_617,
  state: 30_618,
  /** Container images of a repository: tags and the digests they name. */
  container: 30_624,
  ciProgress: 39_842,
  ciStatus: 39_844,
} as const;

/** What applications keep for their users: shown to nobody but the author, who has authenticated. */
export const privateKinds: readonly number[] = [78, 30_078];

export const isPrivateKind = (kind: number): boolean => kind === 78 || kind === 30_078;

/** Events that begin a thread about a repository; sync follows what tags them. */
export const rootKinds: readonly number[] = [kinds.patch, kinds.pullRequest, kinds.pullRequestUpdate, kinds.issue];

/** Events about runs on a commit: they may refer to what they are about by the commit alone. */
export const ciKinds: ReadonlySet<number> = new Set([
  kinds.ciTrigger,
  kinds.ciJob,
  kinds.ciResult,
  kinds.ciRequest,
  kinds.ciStop,
  kinds.ciCoordinator,
  kinds.ciReadiness,
  kinds.ciSecret,
  kinds.ciProgress,
  kinds.ciStatus,
]);

/** Events that are served only together with git data of their own. */
export const gitDataKinds: ReadonlySet<number> = new Set([kinds.state, kinds.pullRequest, kinds.pullRequestUpdate]);

const named = new Set<number>([...Object.values(kinds), 1, 7, 1622, 1630, 1631, 1632, 1633, 9735]);

/** A metric label: kinds nobody here has heard of share one, so that strangers cannot make labels. */
export const kindLabel = (kind: number): string => (named.has(kind) ? String(kind) : "other");

export type Tag = readonly string[];

/** An event of the right shape whose id is the hash of its content. Its signature may not have been checked yet. */
export interface NostrEvent {
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly created_at: number;
  readonly kind: number;
  readonly tags: readonly Tag[];
  readonly content: string;
  readonly sig: string;
  /** The JSON text we store and serve. Made here from what was hashed, so it always hashes to the id. */
  readonly raw: string;
}

/** An event whose signature was checked. Only `verify/` makes one; only this reaches the store. */
export type VerifiedEvent = Brand<NostrEvent, "Verified">;

interface UnsignedEvent {
  readonly pubkey: Pubkey;
  readonly created_at: number;
  readonly kind: number;
  readonly tags: readonly Tag[];
  readonly content: string;
}

export const maxKind = 65_535;

/** Of the text we store and serve (spec/relay.md): a mirror's state with thousands of refs fits. */
export const maxEventBytes = 1_048_576;

const sha256Hex: (text: string) => string =
  typeof crypto.hash === "function"
    ? (text) => crypto.hash("sha256", text, "hex")
    : (text) => crypto.createHash("sha256").update(text).digest("hex");

const idPreimage = (event: UnsignedEvent, tagsJson: string, contentJson: string): string =>
  `[0,"${event.pubkey}",${event.created_at},${event.kind},${tagsJson},${contentJson}]`;

export const eventId = (event: UnsignedEvent): EventId =>
  sha256Hex(idPreimage(event, JSON.stringify(event.tags), JSON.stringify(event.content))) as EventId;

// -0 is refused: it hashes like 0 but its bytes in an index key sort elsewhere.
export const isWhole = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && !Object.is(value, -0);

/** NIP-01: each tag is an array of one or more strings. */
function isTagList(value: unknown): value is string[][] {
  if (!Array.isArray(value)) return false;
  for (const tag of value) {
    if (!Array.isArray(tag) || tag.length === 0) return false;
    for (const item of tag) if (typeof item !== "string") return false;
  }
  return true;
}

type ParsedEvent = { readonly ok: true; readonly event: NostrEvent } | Refusal;

/** Checks the shape, the id and the size of a decoded JSON value. */
export function parseEvent(value: unknown): ParsedEvent {
  const parsed = parseEventOfAnySize(value);
  return (parsed.ok && refusedForBytes(parsed.event, maxEventBytes)) || parsed;
}

export const refusedForBytes = ({ raw }: NostrEvent, maxBytes: number): Refusal | undefined =>
  // Counting also joins the pieces the text was made of, which then die young; left alone, both would be kept for long.
  Buffer.byteLength(raw) > maxBytes ? refuse("too-large", `an event may have at most ${maxBytes} bytes`) : undefined;

/** For whoever has a size of his own to hold it against. Unknown keys are dropped: they are not part of the event. */
export function parseEventOfAnySize(value: unknown): ParsedEvent {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return refuse("bad-event", "an event is a JSON object with id, pubkey, created_at, kind, tags, content and sig");
  }
  const { id, pubkey, created_at, kind, tags, content, sig } = value as Record<string, unknown>;
  if (!isEventId(id)) return refuse("bad-event", "id must be 64 lower-case hex digits");
  if (!isPubkey(pubkey)) return refuse("bad-event", "pubkey must be 64 lower-case hex digits");
  if (!isSignature(sig)) return refuse("bad-event", "sig must be 128 lower-case hex digits");
  if (!isWhole(created_at)) return refuse("bad-event", "created_at must be a whole number of seconds since 1970");
  if (!isWhole(kind) || kind > maxKind) return refuse("bad-event", `kind must be a whole number from 0 to ${maxKind}`);
  if (!isTagList(tags)) return refuse("bad-event", "tags must be an array of arrays of one or more strings each");
  if (typeof content !== "string") return refuse("bad-event", "content must be a string");
  // JSON.stringify writes a lone surrogate as \udXXX; UTF-8 cannot carry one, so no two programs agree on its hash.
  if (!content.isWellFormed() || !tags.every((tag) => tag.every((item) => item.isWellFormed()))) {
    return refuse("bad-event", "text must be valid Unicode (a lone surrogate was found)");
  }
  const tagsJson = JSON.stringify(tags);
  const contentJson = JSON.stringify(content);
  const preimage = idPreimage({ pubkey, created_at, kind, tags, content }, tagsJson, contentJson);
  if (sha256Hex(preimage) !== id) return refuse("bad-id", "id is not the hash of the event");
  const raw = `{"id":"${id}","pubkey":"${pubkey}","created_at":${created_at},"kind":${kind},"tags":${tagsJson},"content":${contentJson},"sig":"${sig}"}`;
  return { ok: true, event: { id, pubkey, created_at, kind, tags, content, sig, raw } };
}

/** For text that this server wrote itself (its own store): parsed, not checked again. */
export function eventFromStoredText(raw: string): VerifiedEvent {
  return Object.assign(JSON.parse(raw), { raw }) as VerifiedEvent;
}

export const isReplaceable = (kind: number): boolean => kind === 0 || kind === 3 || (kind >= 10_000 && kind < 20_000);
export const isEphemeral = (kind: number): boolean => kind >= 20_000 && kind < 30_000;
export const isAddressable = (kind: number): boolean => kind >= 30_000 && kind < 40_000;

/** First value of the first tag with that name. */
export function tagValue(event: { readonly tags: readonly Tag[] }, name: string): string | undefined {
  return event.tags.find((tag) => tag[0] === name)?.[1];
}

/** First values of all tags with that name. */
export function tagValues(event: { readonly tags: readonly Tag[] }, name: string): string[] {
  return event.tags.flatMap((tag) => (tag[0] === name && tag[1] !== undefined ? [tag[1]] : []));
}

/** NIP-40: the second at which the event is no longer wanted. */
export function expirationOf(event: { readonly tags: readonly Tag[] }): number | undefined {
  const text = tagValue(event, "expiration");
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** NIP-70: only its own author may publish it. */
export const isProtected = (event: { readonly tags: readonly Tag[] }): boolean =>
  event.tags.some((tag) => tag[0] === "-");

/** NIP-01 order: newest first, the lower id first within a second. Negative when `a` comes before `b`. */
export function compareNewestFirst(
  a: { readonly created_at: number; readonly id: string },
  b: { readonly created_at: number; readonly id: string },
): number {
  return b.created_at - a.created_at || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/** Where the newest version of a replaceable thing is found. The identifier may contain colons. */
export interface Address {
  readonly kind: number;
  readonly pubkey: Pubkey;
  readonly identifier: string;
}

export const addressText = (address: Address): string => `${address.kind}:${address.pubkey}:${address.identifier}`;

export function parseAddress(text: string): Address | undefined {
  const first = text.indexOf(":");
  const second = text.indexOf(":", first + 1);
  if (first < 1 || second < 0) return undefined;
  const kindText = text.slice(0, first);
  const pubkey = text.slice(first + 1, second);
  if (!/^(?:0|[1-9]\d{0,4})$/.test(kindText) || Number(kindText) > maxKind || !isPubkey(pubkey)) return undefined;
  return { kind: Number(kindText), pubkey, identifier: text.slice(second + 1) };
}

/** The address an event lives at, if it is replaceable or addressable. A missing `d` is the empty identifier. */
export function addressOf(event: Pick<NostrEvent, "kind" | "pubkey" | "tags">): Address | undefined {
  if (isAddressable(event.kind)) {
    return { kind: event.kind, pubkey: event.pubkey, identifier: tagValue(event, "d") ?? "" };
  }
  if (isReplaceable(event.kind)) return { kind: event.kind, pubkey: event.pubkey, identifier: "" };
  return undefined;
}

export interface Targets {
  readonly ids: readonly EventId[];
  readonly addresses: readonly Address[];
}

const idTags = new Set(["e", "E", "q"]);
const addressTags = new Set(["a", "A", "q"]);

/** What an event points at: ids (`e`, `E`, `q`) and addresses (`a`, `A`, `q`), each once. */
export function targetsOf(event: Pick<NostrEvent, "tags">, max: number): Targets {
  const ids = new Set<EventId>();
  const addresses = new Map<string, Address>();
  for (const [name, value] of event.tags) {
    if (name === undefined || value === undefined) continue;
    if (ids.size + addresses.size >= max) break;
    if (idTags.has(name) && isEventId(value)) {
      ids.add(value);
    } else if (addressTags.has(name)) {
      const address = parseAddress(value);
      if (address) addresses.set(addressText(address), address);
    }
  }
  return { ids: [...ids], addresses: [...addresses.values()] };
}
