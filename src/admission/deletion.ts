// Rule 6 of relay.md: deletions (5) and requests to vanish (62). A deletion is wanted when it concerns something here, a
// vanish request if it means this relay and its author has something here; both bind only their author's events.

import { rememberedId } from "../catalogue/decisions.js";
import { type WaitingEntry, waitingEntries, waitingEntry, waitingKeys } from "../catalogue/waiting.js";
import {
  type Address,
  type EventId,
  isEventId,
  kinds,
  type NostrEvent,
  parseAddress,
  tagValues,
  type VerifiedEvent,
} from "../nostr/event.js";
import type { Reader } from "../store/port.js";
import { presenceOf } from "./profiles.js";
import { isOurRelay } from "./service.js";
import type { AdmissionSettings } from "./settings.js";
import { type AdmissionContext, refused, stored, type Verdict } from "./verdict.js";
import { inShort, withdrawalOf } from "./withdrawal.js";

interface Hits {
  /** Something here is named, whoever wrote it. */
  any: boolean;
  readonly stored: Map<EventId, NostrEvent>;
  readonly waiting: Map<EventId, WaitingEntry>;
}

const maxWaitingAtAddress = 100;

export async function judgeDeletion(
  event: VerifiedEvent,
  { reader, nowSeconds }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const { maxDeletionTargets } = settings.config();
  const ids = [...new Set(tagValues(event, "e").filter(isEventId))];
  const addresses = [...new Set(tagValues(event, "a"))].flatMap((text) => parseAddress(text) ?? []);
  const targets = ids.length + addresses.length;
  if (targets > maxDeletionTargets) {
    return refused("deletion", "too-many", `a deletion may name at most ${maxDeletionTargets} events`, { targets });
  }
  const hits: Hits = { any: false, stored: new Map(), waiting: new Map() };
  for (const id of ids) await lookById(id, event, reader, nowSeconds, hits);
  for (const address of addresses) await lookByAddress(address, event, reader, hits);
  if (!hits.any) {
    const presence = await presenceOf(reader, event.pubkey);
    if (!presence.anything && !presence.waiting) {
      return refused("deletion", "unrelated", "it names nothing that is here and its author has nothing here", {
        targets,
      });
    }
  }
  const { repositoryBlacklist } = settings.lists();
  const own = await withdrawalOf(
    reader,
    [...hits.stored.values()],
    [...hits.waiting.values()],
    "deletion",
    nowSeconds,
    (name) => repositoryBlacklist.has(name),
  );
  return stored("deletion", { targets, ownStored: hits.stored.size, ownWaiting: hits.waiting.size }, own);
}

async function lookById(
  id: EventId,
  request: NostrEvent,
  reader: Reader,
  nowSeconds: number,
  hits: Hits,
): Promise<void> {
  const target = await reader.event(id);
  if (target) {
    hits.any = true;
    if (target.event.pubkey === request.pubkey) hits.stored.set(id, target.event);
    return;
  }
  const entry = await waitingEntry(reader, id);
  if (entry) {
    hits.any = true;
    if (entry.pubkey === request.pubkey) hits.waiting.set(id, entry);
  } else if (await rememberedId(reader, id, nowSeconds)) {
    hits.any = true;
  }
}

/** By address: only what is not newer than the request, and only at addresses of the author's own. */
async function lookByAddress(address: Address, request: NostrEvent, reader: Reader, hits: Hits): Promise<void> {
  const target = await reader.latest(address);
  const entries = await waitingEntries(reader, waitingKeys.address(address), maxWaitingAtAddress);
  if (target || entries.length > 0) hits.any = true;
  if (address.pubkey !== request.pubkey) return;
  if (target && target.event.created_at <= request.created_at) hits.stored.set(target.event.id, target.event);
  for (const entry of entries) {
    if (entry.created_at <= request.created_at) hits.waiting.set(entry.id, entry);
  }
}

const maxRepositories = 10_000;
/** Few: each may be a megabyte. */
const pageRows = 10;

/** All of the author's events up to the request's time go. */
export async function judgeVanish(
  event: VerifiedEvent,
  { reader, nowSeconds }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const relays = tagValues(event, "relay");
  if (!relays.some((relay) => relay === "ALL_RELAYS" || isOurRelay(relay, settings.services))) {
    return refused("vanish", "not-allowed", "no relay tag of this request names this server or ALL_RELAYS");
  }
  const presence = await presenceOf(reader, event.pubkey);
  if (!presence.anything && !presence.waiting) {
    return refused("vanish", "unrelated", "its author has nothing on this server");
  }
  const going: NostrEvent[] = [];
  const withGitData = [kinds.announcement, kinds.state, kinds.pullRequest, kinds.pullRequestUpdate];
  const filter = { authors: [event.pubkey], kinds: withGitData, until: event.created_at, limit: maxRepositories };
  for await (const page of reader.query([filter], { pageRows, passingRows: true })) {
    for (const { event: one } of page) going.push(inShort(one));
  }
  const entries = await waitingEntries(reader, waitingKeys.author(event.pubkey), maxRepositories);
  const waiting = entries.filter((entry) => entry.created_at <= event.created_at);
  const { repositoryBlacklist } = settings.lists();
  const own = await withdrawalOf(reader, going, waiting, "vanish", nowSeconds, (name) => repositoryBlacklist.has(name));
  return stored("vanish", { stored: going.length, waiting: waiting.length }, own);
}
