// Whom and what an operator keeps out or lets in: white- and blacklists of keys and repositories (configuration.md),
// and single events and keys that were banned at run time (NIP-86 `banevent`, `banpubkey`): rows of table "bans" under
// `event:<id>` and `key:<pubkey>`. Matching only; parsing text is config's.

import type { Config } from "../config/config.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { TableReader } from "../store/port.js";
import { type RepositoryName, repositoryKey } from "./repositories.js";

/** An entry as an operator writes it: `npub`, `npub/identifier` or `identifier`. */
export type ListEntry =
  | { readonly type: "author"; readonly pubkey: Pubkey }
  | { readonly type: "repository"; readonly pubkey: Pubkey; readonly identifier: string }
  | { readonly type: "identifier"; readonly identifier: string };

/** Entries arranged for look-up: a decision costs the same with ten and with ten thousand of them. */
export interface RepositoryList {
  readonly size: number;
  hasKey(pubkey: Pubkey): boolean;
  has(name: RepositoryName): boolean;
}

export function repositoryList(entries: readonly ListEntry[]): RepositoryList {
  const keys = new Set<Pubkey>();
  const repositories = new Set<string>();
  const identifiers = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "author") keys.add(entry.pubkey);
    else if (entry.type === "identifier") identifiers.add(entry.identifier);
    else repositories.add(repositoryKey({ owner: entry.pubkey, identifier: entry.identifier }));
  }
  return {
    size: entries.length,
    hasKey: (pubkey) => keys.has(pubkey),
    // Lists name repositories wherever they lie.
    has: ({ owner, identifier }) =>
      keys.has(owner) || identifiers.has(identifier) || repositories.has(repositoryKey({ owner, identifier })),
  };
}

export const emptyList: RepositoryList = repositoryList([]);

export interface AdmissionLists {
  /** Empty: everybody may host here. */
  readonly repositoryWhitelist: RepositoryList;
  readonly repositoryBlacklist: RepositoryList;
  readonly eventBlacklist: RepositoryList;
}

export const openLists: AdmissionLists = {
  repositoryWhitelist: emptyList,
  repositoryBlacklist: emptyList,
  eventBlacklist: emptyList,
};

export const listsOf = (
  config: Pick<Config, "repositoryWhitelist" | "repositoryBlacklist" | "eventBlacklist">,
): AdmissionLists => ({
  repositoryWhitelist: repositoryList(config.repositoryWhitelist),
  repositoryBlacklist: repositoryList(config.repositoryBlacklist),
  eventBlacklist: repositoryList(config.eventBlacklist.map((pubkey) => ({ type: "author", pubkey }))),
});

export const isWhitelisted = (lists: AdmissionLists, name: RepositoryName): boolean =>
  lists.repositoryWhitelist.size === 0 || lists.repositoryWhitelist.has(name);

export interface BanRow {
  readonly since: number;
  readonly reason: string;
}

export const bannedEventKey = (id: EventId): string => `event:${id}`;
export const bannedAuthorKey = (pubkey: Pubkey): string => `key:${pubkey}`;

export async function banOf(
  reader: TableReader,
  event: { readonly id: EventId; readonly pubkey: Pubkey },
): Promise<"event" | "author" | undefined> {
  if ((await reader.row<BanRow>("bans", bannedAuthorKey(event.pubkey))) !== undefined) return "author";
  if ((await reader.row<BanRow>("bans", bannedEventKey(event.id))) !== undefined) return "event";
  return undefined;
}

/** Kept out by a list, or because its owner's key is. */
export async function isRepositoryBlocked(
  reader: TableReader,
  { repositoryBlacklist, eventBlacklist }: AdmissionLists,
  name: RepositoryName,
): Promise<boolean> {
  if (repositoryBlacklist.has(name) || eventBlacklist.hasKey(name.owner)) return true;
  return (await reader.row<BanRow>("bans", bannedAuthorKey(name.owner))) !== undefined;
}
