// `lists show|add|remove`: entries of the white- and blacklists, configured ones and those added at run time. What is
// configured can only be changed in the configuration.

import { unixSeconds } from "../base/clock.js";
import { identifierKey, repositoryKey } from "../catalogue/repositories.js";
import type { Config } from "../config/config.js";
import type { ListEntry, ServiceEntry } from "../config/list-kinds.js";
import { type Caller, noteChange } from "./audit.js";
import { entryNamed, entryText, serviceNamed } from "./naming.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts } from "./parts.js";
import { type ListName, type ListRow, listNames } from "./rules.js";

export interface ListedEntry {
  readonly list: ListName;
  readonly entry: string;
  readonly origin: "configuration" | "run time";
  readonly since: number | null;
  readonly reason: string;
  readonly by: string;
}

export function showLists({ rules, config }: AdminParts, only?: ListName): ListedEntry[] {
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
  return list === "event-blacklist" && entry?.type !== "author" ? undefined : entry;
}

function wantedEntry(list: ListName): string {
  if (list === "archive-grasp-services") return "a host, host:port or URL of a GRASP service";
  return list === "event-blacklist" ? "an npub or hex key" : "an npub, npub/identifier or identifier";
}

export async function addToList(
  parts: AdminParts,
  caller: Caller,
  { list, entry: text, reason }: { readonly list: ListName; readonly entry: string; readonly reason: string },
): Promise<Outcome<{ readonly added: boolean; readonly entry: string }>> {
  const entry = entryFor(list, text);
  if (!entry) return refusal("bad-request", `${JSON.stringify(text)} is not ${wantedEntry(list)}`);
  const key = listRowKey(list, entry);
  const added = await parts.store.transact(async (tx) => {
    if ((await tx.row("lists", key)) !== undefined) return false;
    tx.setRow("lists", key, listRow(parts, caller, entry, reason));
    await noteChange(tx, parts.clock, caller, { what: `add to ${list}`, target: entryText(entry), reason });
    return true;
  });
  await parts.rules.refresh();
  return done({ added, entry: entryText(entry) });
}

export async function removeFromList(
  parts: AdminParts,
  caller: Caller,
  { list, entry: text }: { readonly list: ListName; readonly entry: string },
): Promise<Outcome<{ readonly removed: true; readonly entry: string }>> {
  const entry = entryFor(list, text);
  if (!entry) return refusal("bad-request", `${JSON.stringify(text)} is not ${wantedEntry(list)}`);
  const key = listRowKey(list, entry);
  const removed = await parts.store.transact(async (tx) => {
    if ((await tx.row("lists", key)) === undefined) return false;
    tx.deleteRow("lists", key);
    await noteChange(tx, parts.clock, caller, { what: `remove from ${list}`, target: entryText(entry) });
    return true;
  });
  await parts.rules.refresh();
  if (removed) return done({ removed, entry: entryText(entry) });
  const isConfigured = configuredEntries(parts.config(), list).some((one) => listRowKey(list, one) === key);
  return refusal(
    isConfigured ? "not-possible" : "unknown",
    isConfigured
      ? `${entryText(entry)} is in the configuration: remove it from NGIT_${list.toUpperCase().replaceAll("-", "_")} and reload`
      : `${entryText(entry)} is not on the ${list}`,
  );
}
