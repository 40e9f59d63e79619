// What a first publication says, as pure functions: addresses of a server, an announcement (kind 30617) and a state (kind
// 30618) as drafts, and which refs a state lists. A client like any other: nothing here is special to this server.

import { kinds, type NostrEvent, type Pubkey, type Tag, tagValues } from "../nostr/event.js";
import type { EventDraft } from "../nostr/keys.js";
import { npubOf } from "../nostr/nip19.js";

export interface ServerAddresses {
  /** `https://host/base`, without a slash at its end. */
  readonly http: string;
  readonly relay: string;
}

/** `git.example.com`, `https://git.example.com/base`, `ws://localhost:7334`. Undefined: no such thing. */
export function serverAddresses(text: string): ServerAddresses | undefined {
  const isLocal = /^(?:localhost|127\.|\[::1\])/.test(text);
  const withScheme = /^[a-z]+:\/\//i.test(text) ? text : `http${isLocal ? "" : "s"}://${text}`;
  let url: URL;
  try {
    url = new URL(withScheme);
  } catch {
    return undefined;
  }
  const isSafe = /^(?:https|wss):$/.test(url.protocol);
  if (!isSafe && !/^(?:http|ws):$/.test(url.protocol)) return undefined;
  if (url.hostname === "" || url.username !== "" || url.search !== "" || url.hash !== "") return undefined;
  const place = `${url.host}${url.pathname}`.replace(/\/+$/, "");
  return { http: `http${isSafe ? "s" : ""}://${place}`, relay: `ws${isSafe ? "s" : ""}://${place}` };
}

export interface Place {
  readonly server: ServerAddresses;
  readonly owner: Pubkey;
  readonly identifier: string;
}

export const cloneUrlOf = ({ server, owner, identifier }: Place): string =>
  `${server.http}/${npubOf(owner)}/${encodeURIComponent(identifier)}.git`;

/** A folder's name as a repository's: letters, digits, `.`, `_` and `-`. Undefined when nothing is left. */
export function identifierFrom(name: string): string | undefined {
  const kept = name
    .replace(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[.-]+|[.-]+$/g, "")
    .slice(0, 100);
  return kept === "" ? undefined : kept;
}

/** Of an earlier announcement everything stays that is not about this server; undefined when it says all of it already. */
export function announcementDraft(
  place: Place,
  about: { readonly name?: string; readonly description?: string; readonly firstCommit?: string },
  earlier: NostrEvent | undefined,
  nowSeconds: number,
): EventDraft | undefined {
  const listed = (tag: string, value: string): Tag => [
    tag,
    ...new Set([value, ...(earlier ? listValues(earlier, tag) : [])]),
  ];
  const own: Tag[] = [
    ["d", place.identifier],
    ["name", about.name ?? (earlier && tagValues(earlier, "name")[0]) ?? place.identifier],
    listed("clone", cloneUrlOf(place)),
    listed("relays", place.server.relay),
  ];
  if (about.description !== undefined) own.push(["description", about.description]);
  if (about.firstCommit !== undefined && !earlier?.tags.some(([name]) => name === "r")) {
    own.push(["r", about.firstCommit, "euc"]);
  }
  const set = new Set(own.map(([name]) => name));
  const kept = (earlier?.tags ?? []).filter(([name = ""]) => !set.has(name));
  const tags = [...own, ...kept];
  if (earlier && sameTags(tags, earlier.tags)) return undefined;
  return { kind: kinds.announcement, created_at: after(earlier, nowSeconds), tags, content: earlier?.content ?? "" };
}

const listValues = (event: NostrEvent, tag: string): string[] =>
  event.tags.filter(([name]) => name === tag).flatMap(([, ...values]) => values);

const sameTags = (one: readonly Tag[], other: readonly Tag[]): boolean => {
  const sorted = (tags: readonly Tag[]): string => JSON.stringify(tags.map((tag) => JSON.stringify(tag)).sort());
  return sorted(one) === sorted(other);
};

/** Events are ordered by the second: never two of one address in the same. */
const after = (earlier: NostrEvent | undefined, nowSeconds: number): number =>
  Math.max(nowSeconds, earlier ? earlier.created_at + 1 : 0);

export type Refs = ReadonlyMap<string, string>;

/** Branches and tags of a state event. */
export const refsOfState = (event: NostrEvent | undefined): Refs =>
  new Map((event?.tags ?? []).flatMap(([name = "", oid = ""]) => (isPublishedRef(name) ? [[name, oid] as const] : [])));

const isPublishedRef = (name: string): boolean => /^refs\/(?:heads|tags)\/./.test(name) && !name.endsWith("^{}");

/**
 * What the next state lists: the branch that is checked out and whatever is published already; with `all` every branch and
 * tag. What is published and not here stays as it is: a clone that lacks a branch must not delete it.
 */
export function refsToState(local: Refs, published: Refs, head: string, all: boolean): Refs {
  const refs = new Map(published);
  for (const [name, oid] of local) if (all || name === head || published.has(name)) refs.set(name, oid);
  return refs;
}

/** Undefined when the newest state says this already. */
export function stateDraft(
  identifier: string,
  refs: Refs,
  head: string,
  earlier: NostrEvent | undefined,
  nowSeconds: number,
): EventDraft | undefined {
  const tags: Tag[] = [["d", identifier], ...refs, ["HEAD", `ref: ${head}`]];
  if (earlier && sameTags(tags, earlier.tags)) return undefined;
  return { kind: kinds.state, created_at: after(earlier, nowSeconds), tags, content: "" };
}
