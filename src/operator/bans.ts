// `ban` and `unban`: keys, single events, repositories and networks. What is banned goes from the store at once (cause
// `ban`), waiting events too, and does not come back: admission refuses it (admission/always-refused.ts), the blacklist refuses
// the repository, the port refuses the network. Rows of table "bans": key:, event:, ip:; repositories are entries of
// the repository blacklist.

import { unixSeconds } from "../base/clock.js";
import { type BanRow, bannedAuthorKey, bannedEventKey } from "../catalogue/bans-and-lists.js";
import { catalogueRow, type RepositoryName } from "../catalogue/repositories.js";
import { waitingEntries, waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import type { ListEntry } from "../config/value-kinds.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { npubOf } from "../nostr/nip19.js";
import type { TableReader } from "../store/port.js";
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

export interface BanRequest {
  readonly type: BanType;
  readonly target: string;
  readonly reason: string;
}

export interface BanResult {
  readonly target: string;
  /** Stored and waiting events that were taken away. */
  readonly removedEvents: number;
}

const eventsPerStep = 200;
const kinds: Readonly<Record<BanType, string>> = {
  key: "an npub or hex key",
  event: "an event id, note or nevent",
  repository: "npub/identifier or naddr",
  ip: "an IP address or CIDR network",
};

const unreadable = ({ type, target }: Pick<BanRequest, "type" | "target">) =>
  refusal("bad-request", `${JSON.stringify(target)} is not ${kinds[type]}`);

export async function ban(
  parts: AdminParts,
  caller: Caller,
  request: BanRequest,
  progress: Progress,
): Promise<Outcome<BanResult>> {
  switch (request.type) {
    case "key": {
      const key = keyNamed(request.target);
      if (!key) return unreadable(request);
      if (parts.adminKeys().has(key)) return refusal("not-possible", "an admin's key cannot be banned");
      return done(await banKey(parts, caller, key, request.reason, progress));
    }
    case "event": {
      const id = eventNamed(request.target);
      return id ? done(await banEvent(parts, caller, id, request.reason)) : unreadable(request);
    }
    case "repository": {
      const name = repositoryNamedBy(request.target);
      return name ? done(await banRepository(parts, caller, name, request.reason)) : unreadable(request);
    }
    case "ip":
      return banNetwork(parts, caller, request);
  }
}

const rowOf = (parts: AdminParts, reason: string): BanRow => ({ since: unixSeconds(parts.clock), reason });

async function banKey(
  parts: AdminParts,
  caller: Caller,
  key: Pubkey,
  reason: string,
  progress: Progress,
): Promise<BanResult> {
  const { store } = parts;
  const target = npubOf(key);
  await changeRules(parts, caller, { what: "ban key", target, reason }, (tx) =>
    tx.setRow("bans", bannedAuthorKey(key), rowOf(parts, reason)),
  );
  const total = (await store.count([{ authors: [key] }])) + (await waitingCount(store, key));
  let removed = 0;
  // From here on none comes in: each step takes away the newest that are left.
  for (;;) {
    const step = await store.transact(async (tx): Promise<{ withdrawn: TakenAway; count: number }> => {
      const stored = [];
      for await (const page of tx.query([{ authors: [key], limit: eventsPerStep }])) {
        stored.push(...page.map((row) => row.event));
      }
      const waiting = await waitingEntries(tx, waitingKeys.author(key), eventsPerStep);
      const withdrawn = await takeAway(parts, tx, { stored, waiting }, "ban");
      return { withdrawn, count: stored.length + waiting.length };
    });
    await followInGit(parts, step.withdrawn);
    if (step.count === 0) return { target, removedEvents: removed };
    removed += step.count;
    progress(removed, total, "removing events");
  }
}

async function waitingCount(reader: TableReader, key: Pubkey): Promise<number> {
  let count = 0;
  for await (const _ of reader.rows("purgatory", { prefix: waitingKeys.author(key) })) count++;
  return count;
}

async function banEvent(parts: AdminParts, caller: Caller, id: EventId, reason: string): Promise<BanResult> {
  const withdrawn = await changeRules(parts, caller, { what: "ban event", target: id, reason }, async (tx) => {
    tx.setRow("bans", bannedEventKey(id), rowOf(parts, reason));
    const stored = await tx.event(id);
    const waiting = await waitingEntry(tx, id);
    const going = { stored: stored ? [stored.event] : [], waiting: waiting ? [waiting] : [] };
    const end = await takeAway(parts, tx, going, "ban");
    return { end, count: going.stored.length + going.waiting.length };
  });
  await followInGit(parts, withdrawn.end);
  return { target: id, removedEvents: withdrawn.count };
}

const blacklistEntry = (name: RepositoryName): ListEntry => ({
  type: "repository",
  pubkey: name.owner,
  identifier: name.identifier,
});

async function banRepository(
  parts: AdminParts,
  caller: Caller,
  name: RepositoryName,
  reason: string,
): Promise<BanResult> {
  const target = repositoryText(name);
  const entry = blacklistEntry(name);
  const withdrawn = await changeRules(parts, caller, { what: "ban repository", target, reason }, async (tx) => {
    tx.setRow("lists", listRowKey("repository-blacklist", entry), listRow(parts, caller, entry, reason));
    const row = await catalogueRow(tx, name);
    return row && row.status !== "deleted" ? takeDown(parts, tx, row, "ban", reason) : undefined;
  });
  if (withdrawn) await followInGit(parts, withdrawn);
  return { target, removedEvents: withdrawn?.events.length ?? 0 };
}

async function banNetwork(parts: AdminParts, caller: Caller, request: BanRequest): Promise<Outcome<BanResult>> {
  const network = networkNamed(request.target);
  if (!network) return unreadable(request);
  const target = networkText(network);
  const { reason } = request;
  await changeRules(parts, caller, { what: "block network", target, reason }, (tx) =>
    tx.setRow("bans", `${networkPrefix}${target}`, rowOf(parts, reason)),
  );
  return done({ target, removedEvents: 0 });
}

/** Lifts a ban. What was removed does not come back by itself: repositories are restored, events are sent again. */
export async function unban(
  parts: AdminParts,
  caller: Caller,
  { type, target: text }: Pick<BanRequest, "type" | "target">,
): Promise<Outcome<{ readonly target: string }>> {
  const place = placeOf(type, text);
  if (!place) return unreadable({ type, target: text });
  const lifted = await changeRules(parts, caller, { what: `unban ${type}`, target: place.target }, async (tx) => {
    if ((await tx.row(place.table, place.key)) === undefined) return false;
    tx.deleteRow(place.table, place.key);
    return true;
  });
  return lifted ? done({ target: place.target }) : refusal("unknown", `${place.target} is not banned`);
}

function placeOf(
  type: BanType,
  text: string,
): { readonly table: "bans" | "lists"; readonly key: string; readonly target: string } | undefined {
  switch (type) {
    case "key": {
      const key = keyNamed(text);
      return key && { table: "bans", key: bannedAuthorKey(key), target: npubOf(key) };
    }
    case "event": {
      const id = eventNamed(text);
      return id && { table: "bans", key: bannedEventKey(id), target: id };
    }
    case "repository": {
      const name = repositoryNamedBy(text);
      return (
        name && {
          table: "lists",
          key: listRowKey("repository-blacklist", blacklistEntry(name)),
          target: repositoryText(name),
        }
      );
    }
    case "ip": {
      const network = networkNamed(text);
      return network && { table: "bans", key: `${networkPrefix}${networkText(network)}`, target: networkText(network) };
    }
  }
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
