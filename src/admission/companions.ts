// Profiles (0, 3, 10002) of authors of accepted events, and grasp lists (10317): rules 5 and 6 of relay.md.
// The newest of each is kept; the store replaces.

import { waitingEntries, waitingKeys } from "../catalogue/waiting.js";
import type { VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import type { AdmissionContext, Verdict } from "./policy.js";
import { presenceOf } from "./presence.js";
import { holdRelated, judgeRelated } from "./related.js";
import type { AdmissionSettings } from "./settings.js";
import type { Tally } from "./tally.js";
import { refused, stored } from "./verdicts.js";

/** A profile of somebody who only waits here waits with the first of his repositories. */
export async function judgeProfile(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const { reader } = context;
  const presence = await presenceOf(reader, event.pubkey);
  if (presence.substance) return stored("profile", { author: event.pubkey });
  if (presence.waiting) {
    const entries = await waitingEntries(reader, waitingKeys.author(event.pubkey), 20);
    const repositories = entries.filter((entry) => entry.phase === "waiting").flatMap((entry) => entry.repositories);
    if (repositories.length > 0) return holdRelated(event, repositories.slice(0, 1), context, settings.caps());
  }
  return judgeRelated(event, context, settings);
}

export async function judgeGraspList(
  event: VerifiedEvent,
  { reader, source, nowSeconds }: AdmissionContext,
  settings: AdmissionSettings,
  tally: Tally,
): Promise<Verdict> {
  const presence = await presenceOf(reader, event.pubkey);
  if (presence.substance || presence.waiting) return stored("grasp-list", { author: event.pubkey });
  if (source.type === "sync") {
    return refused("grasp-list", "unrelated", "its author has nothing on this server");
  }
  const caps = settings.caps();
  if (
    source.type === "client" &&
    !settings.graspLists.allows(source.ip, event.id, nowSeconds, caps.graspListsPerIpAndHour)
  ) {
    return refused("grasp-list", "rate-limited", "too many grasp lists from this address: try again in an hour");
  }
  const replaces = await reader.latest({ kind: kinds.graspList, pubkey: event.pubkey, identifier: "" });
  const inAll = () => reader.count([{ kinds: [kinds.graspList] }]);
  if (!replaces && (await tally.next(nowSeconds, inAll)) > caps.graspLists) {
    return refused("grasp-list", "too-many", "this server keeps no more grasp lists of strangers");
  }
  return stored("grasp-list", { author: event.pubkey, stranger: true });
}
