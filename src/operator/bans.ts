// `ban` and `unban`: keys, single events, repositories and networks. What is banned goes from the store at once (cause
// `ban`), waiting events too, and does not come back: admission refuses it (admission/policy.ts), the blacklist refuses
// the repository, the port refuses the network. Rows of table "bans": key:, event:, ip:; repositories are entries of
// the repository blacklist.

import { unixSeconds } from "../base/clock.js";
import type { BanRow } from "../catalogue/bans-and-lists.js";
import { type BanPlace, countRemovedBy, keepRemoved } from "../catalogue/removed-by-ban.js";
import { catalogueRow, type RepositoryName } from "../catalogue/repositories.js";
import { waitingEntries, waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import type { EventId, Pubkey, VerifiedEvent } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Transaction } from "../store/port.js";
import { adminsKey, banningOf, blacklistEntry, type Named, unreadable } from "./ban-targets.js";
import { type AdminParts, type Caller, changeRules, done, type Outcome, type Progress, refusal } from "./context.js";
import { followInGit, type TakenAway, takeAway, takeDown } from "./hosting.js";
import { listRow } from "./lists.js";
import { repositoryText } from "./naming.js";
import { type RestoredByUnban, restoreBanned } from "./restore-banned.js";
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

export interface Unbanned {
  readonly target: string;
  /** Null: it was not asked for. */
  readonly restored: RestoredByUnban | null;
}

const eventsPerStep = 200;

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
    return adminsKey;
  }
  const { reason } = request;
  const row =
    type === "repository"
      ? listRow(parts, caller, blacklistEntry(banning.name), reason)
      : { since: unixSeconds(parts.clock), reason };
  const what = type === "ip" ? "block network" : `ban ${type}`;
  const taken = await changeRules(parts, caller, { what, target, reason }, (tx) => {
    tx.setRow<BanRow>(banning.table, banning.key, row);
    if (type === "event") return takeEvent(parts, tx, banning);
    return type === "repository" ? takeRepository(parts, tx, banning.name, reason) : undefined;
  });
  if (type === "key") return done({ target, removedEvents: await removeAllBy(parts, banning, progress) });
  if (!taken) return done({ target, removedEvents: 0 });
  await followInGit(parts, taken);
  return done({ target, removedEvents: taken.events.length + (type === "event" ? taken.ended.length : 0) });
}

async function takeEvent(parts: AdminParts, tx: Transaction, banning: BanPlace & { id: EventId }): Promise<TakenAway> {
  const stored = await tx.event(banning.id);
  const waiting = await waitingEntry(tx, banning.id);
  const going = { stored: stored ? [stored.event] : [], waiting: waiting ? [waiting] : [] };
  return takeAndKeep(parts, tx, banning, going);
}

/** What a ban takes away can be brought back for a while. */
function takeAndKeep(
  parts: AdminParts,
  tx: Transaction,
  banning: BanPlace,
  going: Parameters<typeof takeAway>[2],
): Promise<TakenAway> {
  const waiting = going.waiting.map(({ id, raw, eventKind }) => ({ id, raw, kind: eventKind }));
  keepRemoved(tx, banning, [...going.stored, ...waiting], unixSeconds(parts.clock));
  return takeAway(parts, tx, going, "ban");
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
async function removeAllBy(
  parts: AdminParts,
  banning: BanPlace & { readonly pubkey: Pubkey },
  progress: Progress,
): Promise<number> {
  const { store } = parts;
  const key = banning.pubkey;
  let total = await store.count([{ authors: [key] }]);
  for await (const _ of store.rows("purgatory", { prefix: waitingKeys.author(key) })) total++;
  for (let removed = 0; ; progress(removed, total, "removing events")) {
    const taken = await store.transact(async (tx) => {
      const stored: VerifiedEvent[] = [];
      for await (const page of tx.query([{ authors: [key], limit: eventsPerStep }])) {
        stored.push(...page.map((row) => row.event));
      }
      const waiting = await waitingEntries(tx, waitingKeys.author(key), eventsPerStep);
      return takeAndKeep(parts, tx, banning, { stored, waiting });
    });
    await followInGit(parts, taken);
    const count = taken.events.length + taken.ended.length;
    if (count === 0) return removed;
    removed += count;
  }
}

/** Lifts a ban. What it removed stays away (authors may send it again), unless it is to be restored. */
export async function unban(
  parts: AdminParts,
  caller: Caller,
  request: Named & { readonly restore: boolean },
  progress: Progress,
): Promise<Outcome<Unbanned>> {
  const banning = banningOf(request);
  if (!banning) return unreadable(request);
  const { table, key, target } = banning;
  const lifted = await changeRules(parts, caller, { what: `unban ${request.type}`, target }, async (tx) => {
    if ((await tx.row(table, key)) === undefined) return false;
    tx.deleteRow(table, key);
    return true;
  });
  // A ban that was lifted without that can still be undone.
  if (!lifted && !(request.restore && (await countRemovedBy(parts.store, banning)) > 0)) {
    return refusal("unknown", `${target} is not banned`);
  }
  if (!request.restore) return done({ target, restored: null });
  const restored = await restoreBanned(parts, caller, banning, progress);
  return restored.ok ? done({ target, restored: restored.result }) : restored;
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
