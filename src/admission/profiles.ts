// Profiles (0, 3, 10002) of authors of accepted events, and grasp lists (10317): rules 5 and 6 of relay.md.
// The newest of each is kept; the store replaces.

import { waitingEntries, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import { kinds, type Pubkey, type VerifiedEvent } from "../nostr/event.js";
import type { Reader } from "../store/port.js";
import { holdRelated, judgeRelated } from "./related.js";
import type { AdmissionSettings } from "./settings.js";
import { type AdmissionContext, refused, stored, type Verdict } from "./verdict.js";

/** Kinds that come with an author rather than being about a repository; at most one of each is stored. */
const profileKinds = new Set<number>([kinds.profile, kinds.contacts, kinds.relayList, kinds.graspList]);

interface Presence {
  readonly anything: boolean;
  /** Something other than profiles and grasp lists. */
  readonly substance: boolean;
  readonly waiting: boolean;
}

/** Does this author have anything here? For profiles, grasp lists, deletions and vanish requests. */
export async function presenceOf(reader: Reader, pubkey: Pubkey): Promise<Presence> {
  let anything = false;
  let substance = false;
  // One more than there are such kinds: the last one must be something else.
  const limit = profileKinds.size + 1;
  for await (const page of reader.query([{ authors: [pubkey], limit }], { limit })) {
    anything ||= page.length > 0;
    substance ||= page.some((row) => !profileKinds.has(row.event.kind));
  }
  const waiting = (await waitingHints(reader, waitingKeys.author(pubkey), 1)).length > 0;
  return { anything, substance, waiting };
}

/**
 * How many there are of something, without counting them for each newcomer: counted once a minute, guessed upwards in
 * between. For bounds that need not be exact.
 */
export interface ApproximateCount {
  /** The number with one more. */
  next(nowSeconds: number, count: () => Promise<number>): Promise<number>;
}

const refreshSeconds = 60;

export function approximateCount(): ApproximateCount {
  let countedAt = Number.NEGATIVE_INFINITY;
  let known = 0;
  return {
    async next(nowSeconds, count) {
      // A clock that was set back must not keep an old count alive.
      if (Math.abs(nowSeconds - countedAt) >= refreshSeconds) {
        known = await count();
        countedAt = nowSeconds;
      }
      known++;
      return known;
    },
  };
}

/** A profile of an author who only has waiting repositories waits with the first of them. */
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
    if (repositories.length > 0) return holdRelated(event, repositories.slice(0, 1), context, settings.config());
  }
  return judgeRelated(event, context, settings);
}

export async function judgeGraspList(
  event: VerifiedEvent,
  { reader, source, nowSeconds }: AdmissionContext,
  settings: AdmissionSettings,
  graspLists: ApproximateCount,
): Promise<Verdict> {
  const presence = await presenceOf(reader, event.pubkey);
  if (presence.substance || presence.waiting) return stored("grasp-list", { author: event.pubkey });
  if (source.type === "sync") {
    return refused("grasp-list", "unrelated", "its author has nothing on this server");
  }
  const config = settings.config();
  if (
    source.type === "client" &&
    !settings.graspLists.allows(source.ip, event.id, nowSeconds, config.graspListsPerHourPerIp)
  ) {
    return refused("grasp-list", "rate-limited", "too many grasp lists from this address: try again in an hour");
  }
  const replaces = await reader.latest({ kind: kinds.graspList, pubkey: event.pubkey, identifier: "" });
  const inAll = () => reader.count([{ kinds: [kinds.graspList] }]);
  if (!replaces && (await graspLists.next(nowSeconds, inAll)) > config.maxGraspLists) {
    return refused("grasp-list", "too-many", "this server keeps no more grasp lists of strangers");
  }
  return stored("grasp-list", { author: event.pubkey, stranger: true });
}
