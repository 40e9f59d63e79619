// NIP-34 events seen as what they mean: announcement, state, pull request; and the git objects and refs they
// name, checked once and then carried by type. Views read tags; they judge nothing.

import type { Brand } from "../base/brand.js";
import {
  type Address,
  type EventId,
  isEventId,
  isPubkey,
  kinds,
  type NostrEvent,
  type Pubkey,
  parseAddress,
  tagValue,
  tagValues,
} from "./event.js";

/** A git object id: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits. Nothing else may ever reach git. */
export type Oid = Brand<string, "Oid">;

const oidPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

/** How a repository names its objects. The length of an id tells which. */
export type ObjectFormat = "sha1" | "sha256";

export const oidDigits: Readonly<Record<ObjectFormat, number>> = { sha1: 40, sha256: 64 };

export const formatOf = (oid: Oid): ObjectFormat => (oid.length === oidDigits.sha256 ? "sha256" : "sha1");

/** As people write it. */
export const formatName = (format: ObjectFormat): string => (format === "sha256" ? "SHA-256" : "SHA-1");

export const isOid = (text: unknown): text is Oid => typeof text === "string" && oidPattern.test(text);

/** A full ref name (`refs/…`) that git itself would accept. */
export type RefName = Brand<string, "RefName">;

export const maxRefNameBytes = 255;

// Control bytes, space, ~ ^ : ? * [ \ and DEL are never allowed in a ref name.
const forbiddenCharacters = /[\x00-\x20\x7f~^:?*[\\]/;

/**
 * A full ref name as `git check-ref-format` allows it, of at most 255 bytes. Which namespaces a push or a state may use is
 * decided elsewhere (spec/git-http.md).
 */
export function isRefName(name: string): name is RefName {
  if (!name.startsWith("refs/") || Buffer.byteLength(name) > maxRefNameBytes) return false;
  if (forbiddenCharacters.test(name) || name.includes("..") || name.includes("@{") || !name.isWellFormed())
    return false;
  if (name.endsWith(".")) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}

export interface Announcement {
  readonly event: NostrEvent;
  readonly owner: Pubkey;
  readonly identifier: string;
  readonly name: string;
  readonly description: string;
  /** Values of all `clone` tags, in order; unchecked text. */
  readonly clone: readonly string[];
  /** Values of all `relays` tags, in order; unchecked text. */
  readonly relays: readonly string[];
  readonly web: readonly string[];
  /** Keys of all `maintainers` tags. Role tags (`M`, `m`, `o`) are read by admission's maintainer sets. */
  readonly maintainers: readonly Pubkey[];
  readonly earliestUniqueCommit: string | undefined;
  readonly hashtags: readonly string[];
}

const allValues = (event: NostrEvent, name: string): string[] =>
  event.tags.flatMap((tag) => (tag[0] === name ? tag.slice(1) : []));

export function announcementOf(event: NostrEvent): Announcement | undefined {
  if (event.kind !== kinds.announcement) return undefined;
  return {
    event,
    owner: event.pubkey,
    identifier: tagValue(event, "d") ?? "",
    name: tagValue(event, "name") ?? "",
    description: tagValue(event, "description") ?? "",
    clone: allValues(event, "clone"),
    relays: allValues(event, "relays"),
    web: allValues(event, "web"),
    maintainers: [...new Set(allValues(event, "maintainers").filter(isPubkey))],
    earliestUniqueCommit: event.tags.find((tag) => tag[0] === "r" && tag[2] === "euc")?.[1],
    hashtags: tagValues(event, "t"),
  };
}

export interface StateRef {
  /** As written; not checked to be a legal ref name. */
  readonly name: string;
  /** As written; not checked to be an object id. Empty when the tag has no value: such a state must not read as "this ref is gone". */
  readonly value: string;
}

export interface RepositoryState {
  readonly event: NostrEvent;
  readonly author: Pubkey;
  readonly identifier: string;
  /** `refs/heads/*` and `refs/tags/*` entries in order, duplicates included, peeled (`^{}`) entries left out. */
  readonly refs: readonly StateRef[];
  /** The branch HEAD names (`refs/heads/x`), however it was spelled; undefined when absent or a raw object id. */
  readonly headBranch: string | undefined;
}

/** The formats of the ids it names: more than one where it mixes them, which no repository can hold. */
export const formatsNamed = ({ refs }: Pick<RepositoryState, "refs">): ReadonlySet<ObjectFormat> =>
  new Set(refs.flatMap(({ value }) => (isOid(value) ? [formatOf(value)] : [])));

function headBranchOf(event: NostrEvent): string | undefined {
  const text = tagValue(event, "HEAD")?.replace(/^ref:\s*/, "");
  return text?.startsWith("refs/heads/") ? text : undefined;
}

export function stateOf(event: NostrEvent): RepositoryState | undefined {
  if (event.kind !== kinds.state) return undefined;
  const refs: StateRef[] = [];
  for (const [name, value] of event.tags) {
    if (name === undefined || name.endsWith("^{}")) continue;
    if (name.startsWith("refs/heads/") || name.startsWith("refs/tags/")) refs.push({ name, value: value ?? "" });
  }
  return {
    event,
    author: event.pubkey,
    identifier: tagValue(event, "d") ?? "",
    refs,
    headBranch: headBranchOf(event),
  };
}

export interface PullRequest {
  readonly event: NostrEvent;
  /** The repositories it addresses (`a` tags of kind 30617). */
  readonly repositories: readonly Address[];
  /** The `c` tag: the tip commit as written, unchecked. */
  readonly tip: string;
  readonly clone: readonly string[];
  /** For an update (1619): the pull request it updates. */
  readonly updates: EventId | undefined;
}

export function pullRequestOf(event: NostrEvent): PullRequest | undefined {
  if (event.kind !== kinds.pullRequest && event.kind !== kinds.pullRequestUpdate) return undefined;
  const updated = tagValue(event, "E");
  return {
    event,
    repositories: repositoriesTagged(event),
    tip: tagValue(event, "c") ?? "",
    clone: allValues(event, "clone"),
    updates: event.kind === kinds.pullRequestUpdate && isEventId(updated) ? updated : undefined,
  };
}

/** Coordinates of announcements an event names in its `a` tags, each once. */
export function repositoriesTagged(event: Pick<NostrEvent, "tags">): Address[] {
  const seen = new Map<string, Address>();
  for (const text of tagValues(event, "a")) {
    const address = parseAddress(text);
    if (address?.kind === kinds.announcement) seen.set(text, address);
  }
  return [...seen.values()];
}
