// What an operator changes at run time without touching the configuration (rules.ts keeps it in memory): entries of the
// white- and blacklists (`lists show|add|remove`), the relay's name, description and icon, and kinds of events that are
// not taken. What is configured can only be changed in the configuration.

import { unixSeconds } from "../base/clock.js";
import type { BanRow } from "../catalogue/bans-and-lists.js";
import { identifierKey, repositoryKey } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import { type ListEntry, type ServiceEntry, text, webUrl } from "../config/value-kinds.js";
import { maxKind } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import { type AdminParts, type Caller, changeRules, done, type Outcome, refusal } from "./context.js";
import { entryNamed, entryText, serviceNamed } from "./naming.js";
import { kindPrefix, type ListName, type ListRow, listNames, type ProfileField, profileKey } from "./rules.js";

export interface ListedEntry {
  readonly list: ListName;
  readonly entry: string;
  /** `peer relay`: the key runs a relay of an accepted announcement (NGIT_PRIVATE_PEERS); the reason names the relay. */
  readonly origin: "configuration" | "run time" | "peer relay";
  readonly since: number | null;
  readonly reason: string;
  readonly by: string;
}

export function showLists({ rules, config, members }: AdminParts, only?: ListName): ListedEntry[] {
  const configured = config();
  return listNames
    .filter((list) => only === undefined || list === only)
    .flatMap((list): ListedEntry[] => [
      ...configuredEntries(configured, list).map((entry) => ({
        list,
        entry: entryText(entry),
        origin: "configuration" as const,
        since: null,
        reason: "",
        by: "",
      })),
      ...rules.rowsOf(list).map(({ entry, since, reason, by }) => ({
        list,
        entry: entryText(entry),
        origin: "run time" as const,
        since,
        reason,
        by,
      })),
      ...(list === "private-members" ? (members()?.peers ?? []) : []).map(({ pubkey, relay }) => ({
        list,
        entry: npubOf(pubkey),
        origin: "peer relay" as const,
        since: null,
        reason: relay,
        by: "",
      })),
    ]);
}

type Entry = ListEntry | ServiceEntry;

function configuredEntries(config: Config, list: ListName): readonly Entry[] {
  switch (list) {
    case "repository-whitelist":
      return config.repositoryWhitelist;
    case "repository-blacklist":
      return config.repositoryBlacklist;
    case "event-blacklist":
      return config.eventBlacklist.map((pubkey) => ({ type: "author", pubkey }));
    case "private-members":
      return config.privateMembers.map((pubkey) => ({ type: "author", pubkey }));
    case "archive-whitelist":
      return config.archiveWhitelist;
    case "archive-grasp-services":
      return config.archiveGraspServices.map((host) => ({ type: "service", host }));
  }
}

export function listRowKey(list: ListName, entry: Entry): string {
  if (entry.type === "service") return `${list}:s:${entry.host}`;
  if (entry.type === "author") return `${list}:a:${entry.pubkey}`;
  if (entry.type === "identifier") return `${list}:i:${identifierKey(entry.identifier)}`;
  return `${list}:r:${repositoryKey({ owner: entry.pubkey, identifier: entry.identifier })}`;
}

export function listRow({ clock }: AdminParts, caller: Caller, entry: Entry, reason: string): ListRow {
  return { entry, since: unixSeconds(clock), reason, by: caller.who };
}

function entryFor(list: ListName, text: string): Entry | undefined {
  if (list === "archive-grasp-services") return serviceNamed(text);
  const entry = entryNamed(text);
  return isOfKeys(list) && entry?.type !== "author" ? undefined : entry;
}

function wantedEntry(list: ListName): string {
  if (list === "archive-grasp-services") return "a host, host:port or URL of a GRASP service";
  return isOfKeys(list) ? "an npub or hex key" : "an npub, npub/identifier or identifier";
}

const isOfKeys = (list: ListName): boolean => list === "event-blacklist" || list === "private-members";

export async function addToList(
  parts: AdminParts,
  caller: Caller,
  { list, entry: text, reason }: { readonly list: ListName; readonly entry: string; readonly reason: string },
): Promise<Outcome<{ readonly added: boolean; readonly entry: string }>> {
  const entry = entryFor(list, text);
  if (!entry) return refusal("bad-request", `${JSON.stringify(text)} is not ${wantedEntry(list)}`);
  const key = listRowKey(list, entry);
  const target = entryText(entry);
  const added = await changeRules(parts, caller, { what: `add to ${list}`, target, reason }, async (tx) => {
    if ((await tx.row("lists", key)) !== undefined) return false;
    tx.setRow("lists", key, listRow(parts, caller, entry, reason));
    return true;
  });
  return done({ added, entry: target });
}

export async function removeFromList(
  parts: AdminParts,
  caller: Caller,
  { list, entry: text }: { readonly list: ListName; readonly entry: string },
): Promise<Outcome<{ readonly removed: true; readonly entry: string }>> {
  const entry = entryFor(list, text);
  if (!entry) return refusal("bad-request", `${JSON.stringify(text)} is not ${wantedEntry(list)}`);
  const key = listRowKey(list, entry);
  const target = entryText(entry);
  const removed = await changeRules(parts, caller, { what: `remove from ${list}`, target }, async (tx) => {
    if ((await tx.row("lists", key)) === undefined) return false;
    tx.deleteRow("lists", key);
    return true;
  });
  if (removed) return done({ removed, entry: target });
  const isConfigured = configuredEntries(parts.config(), list).some((one) => listRowKey(list, one) === key);
  return refusal(
    isConfigured ? "not-possible" : "unknown",
    isConfigured
      ? `${target} is in the configuration: remove it from NGIT_${list.toUpperCase().replaceAll("-", "_")} and reload`
      : `${target} is not on the ${list}`,
  );
}

const fieldKinds = { relayName: text(100), relayDescription: text(), relayIcon: webUrl() } as const;

/** In force in the information document at once. An empty text brings the configured one back. */
export async function changeProfile(
  parts: AdminParts,
  caller: Caller,
  { field, value }: { readonly field: ProfileField; readonly value: string },
): Promise<Outcome<{ readonly field: ProfileField; readonly value: string }>> {
  const checked = value === "" ? undefined : fieldKinds[field].read(value);
  if (checked && !checked.ok) return refusal("bad-request", `it must be ${fieldKinds[field].words}`);
  await changeRules(parts, caller, { what: `change ${field}`, target: value.slice(0, 200) }, (tx) => {
    if (checked) tx.setRow("meta", profileKey(field), checked.value);
    else tx.deleteRow("meta", profileKey(field));
  });
  return done({ field, value: parts.rules.over(parts.config())[field] ?? "" });
}

export async function setKindTaken(
  parts: AdminParts,
  caller: Caller,
  { kind, taken, reason }: { readonly kind: number; readonly taken: boolean; readonly reason: string },
): Promise<Outcome<{ readonly refusedKinds: readonly number[] }>> {
  if (!Number.isInteger(kind) || kind < 0 || kind > maxKind) {
    return refusal("bad-request", `a kind is a whole number from 0 to ${maxKind}`);
  }
  const change = { what: taken ? "allow kind" : "disallow kind", target: String(kind), reason };
  await changeRules(parts, caller, change, (tx) => {
    if (taken) tx.deleteRow("bans", `${kindPrefix}${kind}`);
    else tx.setRow<BanRow>("bans", `${kindPrefix}${kind}`, { since: unixSeconds(parts.clock), reason });
  });
  return done({ refusedKinds: [...parts.rules.refusedKinds].sort((a, b) => a - b) });
}
