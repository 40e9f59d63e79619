// What a ban names: a key, an event, a repository or a network; where its row stands, how it is called, and what would go or
// could come back. Changes nothing.

import { bannedAuthorKey, bannedEventKey } from "../catalogue/bans-and-lists.js";
import { countRemovedBy } from "../catalogue/removed-by-ban.js";
import { catalogueRow, catalogueRows, type RepositoryName } from "../catalogue/repositories.js";
import { waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import type { ListEntry } from "../config/value-kinds.js";
import { type EventId, kinds as eventKinds, type Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { type AdminParts, done, type Outcome, refusal } from "./context.js";
import { listRowKey } from "./lists.js";
import { eventNamed, keyNamed, networkNamed, networkText, repositoryNamedBy, repositoryText } from "./naming.js";
import { type BanType, networkPrefix } from "./rules.js";

export interface Named {
  readonly type: BanType;
  readonly target: string;
}

const kinds: Readonly<Record<BanType, string>> = {
  key: "an npub or hex key",
  event: "an event id, note or nevent",
  repository: "npub/identifier or naddr",
  ip: "an IP address or CIDR network",
};

export const unreadable = ({ type, target }: Named) =>
  refusal("bad-request", `${JSON.stringify(target)} is not ${kinds[type]}`);

/** What is banned, where its row stands, and how it is called. */
export type Banning = { readonly table: "bans" | "lists"; readonly key: string; readonly target: string } & (
  | { readonly type: "key"; readonly pubkey: Pubkey }
  | { readonly type: "event"; readonly id: EventId }
  | { readonly type: "repository"; readonly name: RepositoryName }
  | { readonly type: "ip" }
);

export function banningOf({ type, target: text }: Named): Banning | undefined {
  switch (type) {
    case "key": {
      const pubkey = keyNamed(text);
      return pubkey && { type, pubkey, table: "bans", key: bannedAuthorKey(pubkey), target: npubOf(pubkey) };
    }
    case "event": {
      const id = eventNamed(text);
      return id && { type, id, table: "bans", key: bannedEventKey(id), target: id };
    }
    case "repository": {
      const name = repositoryNamedBy(text);
      if (!name) return undefined;
      const key = listRowKey("repository-blacklist", blacklistEntry(name));
      return { type, name, table: "lists", key, target: repositoryText(name) };
    }
    case "ip": {
      const network = networkNamed(text);
      if (!network) return undefined;
      const target = networkText(network);
      return { type, table: "bans", key: `${networkPrefix}${target}`, target };
    }
  }
}

export const blacklistEntry = ({ owner, identifier }: RepositoryName): ListEntry => ({
  type: "repository",
  pubkey: owner,
  identifier,
});

export const adminsKey = refusal("not-possible", "an admin's key cannot be banned");

export interface BanPreview {
  readonly type: BanType;
  readonly target: string;
  readonly isBanned: boolean;
  /** Stored and waiting events that a ban would take away. */
  readonly events: number;
  readonly waiting: number;
  /** Repositories that would be un-hosted, the first of them. */
  readonly repositories: readonly string[];
  readonly moreRepositories: number;
  /** Events that an earlier ban removed and `unban --restore` can bring back. */
  readonly restorable: number;
  /** For how many days after a ban that is possible. */
  readonly graceDays: number;
}

const shownRepositories = 20;

/** What a ban would do, and what lifting it could bring back. */
export async function previewBan(parts: AdminParts, request: Named): Promise<Outcome<BanPreview>> {
  const banning = banningOf(request);
  if (!banning) return unreadable(request);
  const { store } = parts;
  const { type, target } = banning;
  const isBanned = (await store.row(banning.table, banning.key)) !== undefined;
  if (type === "key" && !isBanned && parts.adminKeys().has(banning.pubkey)) return adminsKey;
  const going = await wouldGo(parts, banning);
  const onDisk = type === "repository" ? await deletedNow(parts, banning.name) : 0;
  return done({
    type,
    target,
    isBanned,
    events: going.events,
    waiting: going.waiting,
    repositories: going.repositories.slice(0, shownRepositories),
    moreRepositories: Math.max(0, going.repositories.length - shownRepositories),
    restorable: (await countRemovedBy(store, banning)) + onDisk,
    graceDays: parts.config().unhostGraceDays,
  });
}

const deletedNow = async ({ store }: AdminParts, name: RepositoryName): Promise<number> =>
  (await catalogueRow(store, name))?.status === "deleted" ? 1 : 0;

async function wouldGo(
  { store }: AdminParts,
  banning: Banning,
): Promise<{ readonly events: number; readonly waiting: number; readonly repositories: readonly string[] }> {
  const isServed = async (name: RepositoryName): Promise<string[]> => {
    const row = await catalogueRow(store, name);
    return row && row.status !== "deleted" ? [repositoryText(name)] : [];
  };
  switch (banning.type) {
    case "key": {
      const repositories: string[] = [];
      for await (const row of catalogueRows(store, banning.pubkey)) {
        if (row.status !== "deleted") repositories.push(repositoryText(row));
      }
      let waiting = 0;
      for await (const _ of store.rows("purgatory", { prefix: waitingKeys.author(banning.pubkey) })) waiting++;
      return { events: await store.count([{ authors: [banning.pubkey] }]), waiting, repositories };
    }
    case "event": {
      const event = (await store.event(banning.id))?.event;
      const waiting = await waitingEntry(store, banning.id);
      const isAnnouncement = event?.kind === eventKinds.announcement;
      const identifier = event?.tags.find(([name]) => name === "d")?.[1] ?? "";
      const repositories = isAnnouncement ? await isServed({ owner: event.pubkey, identifier }) : [];
      return { events: event ? 1 : 0, waiting: waiting ? 1 : 0, repositories };
    }
    case "repository": {
      const repositories = await isServed(banning.name);
      const { owner: pubkey, identifier } = banning.name;
      const announcement = await store.latest({ kind: eventKinds.announcement, pubkey, identifier });
      return { events: announcement ? 1 : 0, waiting: 0, repositories };
    }
    case "ip":
      return { events: 0, waiting: 0, repositories: [] };
  }
}
