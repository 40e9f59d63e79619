// Single events and keys an operator banned at run time (NIP-86 `banevent`, `banpubkey`): rows of table "bans".
// Keys: `event:<id>`, `key:<pubkey>`.

import type { EventId, Pubkey } from "../nostr/ids.js";
import type { TableReader } from "../store/port.js";
import type { AdmissionLists } from "./lists.js";
import type { RepositoryName } from "./names.js";

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
