// `ban` and `unban`: keys, single events, repositories and networks. What is banned goes from the store at once (cause
// `ban`), waiting events too, and does not come back: admission refuses it (admission/policy.ts), the blacklist refuses
// the repository, the port refuses the network. Rows of table "bans": key:, event:, ip:; repositories are entries of
// the repository blacklist.

import { unixSeconds } from "../base/clock.js";
import { type BanRow, bannedAuthorKey, bannedEventKey } from "../catalogue/bans-and-lists.js";
import { catalogueRow, type RepositoryName } from "../catalogue/repositories.js";
import { waitingEntries, waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import type { ListEntry } from "../config/value-kinds.js";
import type { EventId, Pubkey, VerifiedEvent } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Transaction } from "../store/port.js";
import { type AdminParts, type Caller, changeRules, done, type Outcome, type Progress, refusal } from "./context.js";
import { followInGit, type TakenAway, takeAway, takeDown } from "./hosting.js";
import { listRow, listRowKey } from "./lists.js";
import { eventNamed, keyNamed, networkNamed, networkText, repositoryNamedBy, repositoryText } from "./naming.js";
import { type BanType, networkPrefix } from "./rules.js";

export interface Banned {
  readonly type: BanType;
  readonly target: string;
  readonly reason: string;
  readonly since: number;
}

export interface BanResult {
  readonly target: string;
  /** Stored and waiting events that were taken away. */
  readonly removedEvents: number;
}

interface Named {
  readonly type: BanType;
  readonly target: string;
}

const eventsPerStep = 200;
const kinds: Readonly<Record<BanType, string>> = {
  key: "an npub or hex key",
  event: "an event id, note or nevent",
  repository: "npub/identifier or naddr",
  ip: "an IP address or CIDR network",
};

const unreadable = ({ type, target }: Named) =>
  refusal("bad-request", `${JSON.stringify(target)} is not ${kinds[type]}`);

/** What is banned, where its row stands, and how it is called. */
type Banning = { readonly table: "bans" | "lists"; readonly key: string; readonly target: string } & (
  | { readonly type: "key"; readonly pubkey: Pubkey }
  | { readonly type: "event"; readonly id: EventId }
  | { readonly type: "repository"; readonly name: RepositoryName }
  | { readonly type: "ip" }
);

function banningOf({ type, target: text }: Named): Banning | undefined {
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

const blacklistEntry = ({ owner, identifier }: RepositoryName): ListEntry => ({
  type: "repository",
  pubkey: owner,
  identifier,
});

export async function ban(
  parts: AdminParts,
  caller: Caller,
  request: Named & { readonly reason: string },
  progress: Progress,
): Promise<Outcome<BanResult>> {
  const banning = banningOf(request);
  if (!banning) return unreadable(request);
  const { type, target } = banning;
  if (type === "key" && parts.adminKeys().has(banning.pubkey)) {
    return refusal("not-possible", "an admin's key cannot be banned");
  }
  const { reason } = request;
  const row =
    type === "repository"
      ? listRow(parts, caller, blacklistEntry(banning.name), reason)
      : { since: unixSeconds(parts.clock), reason };
  const what = type === "ip" ? "block network" : `ban ${type}`;
  const taken = await changeRules(parts, caller, { what, target, reason }, (tx) => {
    tx.setRow<BanRow>(banning.table, banning.key, row);
    if (type === "event") return takeEvent(parts, tx, banning.id);
    return type === "repository" ? takeRepository(parts, tx, banning.name, reason) : undefined;
  });
  if (type === "key") return done({ target, removedEvents: await removeAllBy(parts, banning.pubkey, progress) });
  if (!taken) return done({ target, removedEvents: 0 });
  await followInGit(parts, taken);
  return done({ target, removedEvents: taken.events.length + (type === "event" ? taken.ended.length : 0) });
}

async function takeEvent(parts: AdminParts, tx: Transaction, id: EventId): Promise<TakenAway> {
  const stored = await tx.event(id);
  const waiting = await waitingEntry(tx, id);
  return takeAway(parts, tx, { stored: stored ? [stored.event] : [], waiting: waiting ? [waiting] : [] }, "ban");
}

async function takeRepository(
  parts: AdminParts,
  tx: Transaction,
  name: RepositoryName,
  reason: string,
): Promise<TakenAway | undefined> {
  const row = await catalogueRow(tx, name);
  return row && row.status !== "deleted" ? takeDown(parts, tx, row, "ban", reason) : undefined;
}

/** Of a key that is banned already: none comes in any more, and each step takes away the newest that are left. */
async function removeAllBy(parts: AdminParts, key: Pubkey, progress: Progress): Promise<number> {
  const { store } = parts;
  let total = await store.count([{ authors: [key] }]);
  for await (const _ of store.rows("purgatory", { prefix: waitingKeys.author(key) })) total++;
  for (let removed = 0; ; progress(removed, total, "removing events")) {
    const taken = await store.transact(async (tx) => {
      const stored: VerifiedEvent[] = [];
      for await (const page of tx.query([{ authors: [key], limit: eventsPerStep }])) {
        stored.push(...page.map((row) => row.event));
      }
      const waiting = await waitingEntries(tx, waitingKeys.author(key), eventsPerStep);
      return takeAway(parts, tx, { stored, waiting }, "ban");
    });
    await followInGit(parts, taken);
    const count = taken.events.length + taken.ended.length;
    if (count === 0) return removed;
    removed += count;
  }
}

/** Lifts a ban. What was removed does not come back by itself: repositories are restored, events are sent again. */
export async function unban(
  parts: AdminParts,
  caller: Caller,
  request: Named,
): Promise<Outcome<{ readonly target: string }>> {
  const banning = banningOf(request);
  if (!banning) return unreadable(request);
  const { table, key, target } = banning;
  const lifted = await changeRules(parts, caller, { what: `unban ${request.type}`, target }, async (tx) => {
    if ((await tx.row(table, key)) === undefined) return false;
    tx.deleteRow(table, key);
    return true;
  });
  return lifted ? done({ target }) : refusal("unknown", `${target} is not banned`);
}

export async function bansOf(parts: AdminParts, only?: BanType): Promise<Banned[]> {
  const found: Banned[] = [];
  const wants = (type: BanType): boolean => only === undefined || only === type;
  const prefixes = { key: "key:", event: "event:", ip: networkPrefix } as const;
  for (const [type, prefix] of Object.entries(prefixes) as [keyof typeof prefixes, string][]) {
    if (!wants(type)) continue;
    for await (const [key, row] of parts.store.rows<BanRow>("bans", { prefix })) {
      const name = key.slice(prefix.length);
      found.push({ type, target: type === "key" ? npubOf(name as Pubkey) : name, ...row });
    }
  }
  if (wants("repository")) {
    for (const { entry, since, reason } of parts.rules.rowsOf("repository-blacklist")) {
      if (entry.type !== "repository") continue;
      const target = repositoryText({ owner: entry.pubkey, identifier: entry.identifier });
      found.push({ type: "repository", target, since, reason });
    }
  }
  return found;
}
