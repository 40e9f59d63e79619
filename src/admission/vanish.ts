// Rule 6 of relay.md: requests to vanish (62), if they mean this relay. All of the author's events up to its time go.

import { waitingEntries, waitingKeys } from "../catalogue/waiting.js";
import { type NostrEvent, tagValues, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import type { AdmissionContext, Verdict } from "./policy.js";
import { presenceOf } from "./presence.js";
import { isOurRelay } from "./service.js";
import type { AdmissionSettings } from "./settings.js";
import { refused, stored } from "./verdicts.js";
import { inShort, withdrawalOf } from "./withdrawal.js";

const maxRepositories = 10_000;
/** Few: each may be a megabyte. */
const pageRows = 10;

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
