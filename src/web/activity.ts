// What happened lately on this server and which repositories a search finds: served events only.

import type { RepositoryName } from "../catalogue/repositories.js";
import type { NostrEvent } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { announcementOf, repositoriesTagged, stateOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { ownText } from "./bounded-reading.js";
import { type Person, peopleOf } from "./people.js";
import { releasedRow } from "./repository-facts.js";
import { titleOf } from "./threads.js";

export interface RepositoryEntry {
  readonly name: RepositoryName;
  readonly title: string;
  readonly description: string;
  /** Has a page on this server; others are known here by their announcement only. */
  readonly isHere: boolean;
  readonly created_at: number;
}

export interface Activity {
  readonly type: "announced" | "pushed" | "issue" | "pull request" | "patch";
  readonly id: EventId;
  readonly kind: number;
  readonly author: Person;
  readonly created_at: number;
  /** Of an issue, pull request or patch. */
  readonly title: string | undefined;
  readonly repository: RepositoryEntry;
}

const maxTextCharacters = 2_000;
const looked = 40;
/** Longer events are left out: reading forty of a megabyte for a line each would cost everybody (threats row 33). */
const longestShown = 64 * 1024;

const types: ReadonlyMap<number, Activity["type"]> = new Map([
  [kinds.announcement, "announced"],
  [kinds.state, "pushed"],
  [kinds.issue, "issue"],
  [kinds.pullRequest, "pull request"],
  [kinds.patch, "patch"],
]);

export const activityKinds: readonly number[] = [...types.keys()];

export async function recentActivity(store: Reader, limit: number): Promise<Activity[]> {
  const found: Omit<Activity, "author">[] = [];
  const authors: Pubkey[] = [];
  for await (const page of store.query([{ kinds: activityKinds, limit: looked }], { limit: looked })) {
    for (const row of page) {
      if (found.length === limit || row.size > longestShown) continue;
      const { event } = row;
      const type = types.get(event.kind);
      const repository = type && (await repositoryOf(store, event));
      if (!type || !repository) continue;
      authors.push(event.pubkey);
      found.push({
        type,
        id: event.id,
        kind: event.kind,
        created_at: event.created_at,
        title: type === "announced" || type === "pushed" ? undefined : titleOf(event),
        repository,
      });
    }
  }
  const people = await peopleOf(store, authors);
  return found.map((one, index) => ({ ...one, author: people.get(authors[index] as Pubkey) as Person }));
}

async function repositoryOf(store: Reader, event: NostrEvent): Promise<RepositoryEntry | undefined> {
  if (event.kind === kinds.announcement) return await entryOf(store, event);
  const state = stateOf(event);
  const tagged = state
    ? [{ pubkey: state.author, identifier: state.identifier }]
    : repositoriesTagged(event).slice(0, 5);
  for (const { pubkey, identifier } of tagged) {
    const entry = await storedEntry(store, pubkey, identifier);
    if (entry) return entry;
  }
  return undefined;
}

async function storedEntry(store: Reader, pubkey: Pubkey, identifier: string): Promise<RepositoryEntry | undefined> {
  const stored = await store.latest({ kind: kinds.announcement, pubkey, identifier });
  return stored && (await entryOf(store, stored.event));
}

async function entryOf(store: Reader, event: NostrEvent): Promise<RepositoryEntry | undefined> {
  const announcement = announcementOf(event);
  if (!announcement) return undefined;
  const name = { owner: announcement.owner, identifier: announcement.identifier };
  const row = await releasedRow(store, name);
  return {
    name,
    title: ownText((announcement.name.trim() || announcement.identifier).slice(0, maxTextCharacters)),
    description: ownText(announcement.description.trim().slice(0, maxTextCharacters)),
    isHere: row !== undefined && row !== "waiting",
    created_at: event.created_at,
  };
}

export const maxFound = 50;
export const maxSearchCharacters = 200;

/** NIP-50: words of the name, identifier and description; the last one may be a beginning. */
export async function searchRepositories(
  store: Reader,
  words: string,
  signal: AbortSignal,
): Promise<RepositoryEntry[]> {
  const search = words.slice(0, maxSearchCharacters);
  const found: RepositoryEntry[] = [];
  for await (const page of store.query([{ kinds: [kinds.announcement], search, limit: maxFound }], {
    limit: maxFound,
    signal,
  })) {
    for (const { event } of page) {
      const entry = await entryOf(store, event);
      if (entry) found.push(entry);
    }
  }
  return found;
}
