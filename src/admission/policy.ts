// The admission policy: what is always refused, then one rule by kind (relay.md, "Which events are accepted"). Order is meaning:
// what stands higher is not overridden by what stands lower. For events that an operator imports the bounds against
// strangers are lifted.

import { type AdmissionLists, banOf } from "../catalogue/bans-and-lists.js";
import { addressOf, isEphemeral, kinds, type VerifiedEvent } from "../nostr/event.js";
import type { RefusalCode } from "../nostr/refusals.js";
import { judgeAnnouncement } from "./announcement.js";
import { refusedFromElsewhere } from "./at-the-door.js";
import { judgeDeletion, judgeVanish } from "./deletion.js";
import { type ApproximateCount, approximateCount, judgeGraspList, judgeProfile } from "./profiles.js";
import { judgePullRequest } from "./pull-request.js";
import { judgeRelated } from "./related.js";
import type { AdmissionConfig, AdmissionSettings } from "./settings.js";
import { judgeState } from "./state.js";
import {
  type AdmissionContext,
  type AdmissionPolicy,
  type RefusedVerdict,
  refused,
  relayed,
  stored,
  type Verdict,
} from "./verdict.js";

export function createAdmissionPolicy(settings: AdmissionSettings): AdmissionPolicy {
  const graspLists = approximateCount();
  return async (event, context) =>
    (await alwaysRefused(event, context, settings)) ?? (await judgeByKind(event, context, settings, graspLists));
}

/**
 * What holds for every event before the rule of its kind: kinds the operator refuses, bans, the event blacklist, AUTH
 * events and protected events, and the author's own deletions (rule 1 of relay.md).
 */
async function alwaysRefused(
  event: VerifiedEvent,
  { reader, source }: AdmissionContext,
  settings: AdmissionSettings,
): Promise<RefusedVerdict | undefined> {
  if (settings.refusedKinds().has(event.kind)) {
    return refused("refused-kind", "not-relayed", `events of kind ${event.kind} are not taken here`);
  }
  const ban = await banOf(reader, event);
  if (ban === "author") return refused("ban", "author-blocked", "this key is not wanted here");
  if (ban === "event") return refused("ban", "event-blocked", "this event is not wanted here");
  if (isOnEventBlacklist(event, settings.lists())) {
    return refused("event-blacklist", "author-blocked", "this key is not wanted here");
  }
  // A client's were judged at the door.
  const bearer = source.type === "client" ? undefined : refusedFromElsewhere(event, source, settings.serverKey);
  if (bearer) return bearer;
  const deletion = await reader.deletionOf(event);
  if (deletion === undefined) return undefined;
  const request = await reader.event(deletion);
  return request?.event.kind === kinds.vanish
    ? refused("deleted-by-author", "vanished", "its author has asked to vanish from this server", { request: deletion })
    : refused("deleted-by-author", "deleted", "its author has asked for this event to be deleted", {
        request: deletion,
      });
}

function isOnEventBlacklist(event: VerifiedEvent, { eventBlacklist }: AdmissionLists): boolean {
  if (eventBlacklist.size === 0) return false;
  if (eventBlacklist.hasKey(event.pubkey)) return true;
  const address = addressOf(event);
  return address !== undefined && eventBlacklist.has({ owner: address.pubkey, identifier: address.identifier });
}

async function judgeByKind(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
  graspLists: ApproximateCount,
): Promise<Verdict> {
  switch (event.kind) {
    case kinds.announcement:
      return judgeAnnouncement(event, context, settings);
    case kinds.state:
      return judgeState(event, context, settings);
    case kinds.pullRequest:
    case kinds.pullRequestUpdate:
      return judgePullRequest(event, context, settings);
    case kinds.deletion:
      return judgeDeletion(event, context, settings);
    case kinds.vanish:
      return judgeVanish(event, context, settings);
  }
  // The server's own key and admins may say what they like; over repositories they decide nothing, as above.
  if (event.pubkey === settings.serverKey || settings.adminKeys().has(event.pubkey)) {
    return isEphemeral(event.kind) ? relayed("own-key") : stored("own-key", { author: event.pubkey });
  }
  switch (event.kind) {
    case kinds.profile:
    case kinds.contacts:
    case kinds.relayList:
      return judgeProfile(event, context, settings);
    case kinds.graspList:
      return judgeGraspList(event, context, settings, graspLists);
  }
  const verdict = await judgeRelated(event, context, settings);
  return isEphemeral(event.kind) ? ephemeral(verdict) : verdict;
}

/** Passed on when related to something served; there is nothing to hold. */
function ephemeral(verdict: Verdict): Verdict {
  if (!verdict.ok) return { ...verdict, rule: "ephemeral" };
  if (verdict.action === "store") return relayed("ephemeral", verdict.facts);
  return refused("ephemeral", "not-relayed", "what it is about is not served yet", verdict.facts);
}

/** An operator moves a whole server at once: what protects against strangers' floods would be in the way. */
const operatorsBounds: Partial<AdmissionConfig> = {
  purgatoryMaxAnnouncementsPerKey: Number.MAX_SAFE_INTEGER,
  purgatoryMaxAnnouncements: Number.MAX_SAFE_INTEGER,
  purgatoryMaxRelatedPerRepository: 10_000,
  purgatoryMaxBytes: 2 ** 30,
  maxGraspLists: Number.MAX_SAFE_INTEGER,
};

/** Refusals that only say: this concerns no repository here. */
const nothingToUs = new Set<RefusalCode>(["service-not-listed", "unrelated", "no-announcement", "not-a-maintainer"]);

/** The same rules with the operator's bounds, for everything that comes. */
export const policyOfOperator = (settings: AdmissionSettings): AdmissionPolicy =>
  createAdmissionPolicy({ ...settings, config: () => ({ ...settings.config(), ...operatorsBounds }) });

/**
 * The rules of this server, with their own bounds for `events import`. An imported event that is nothing to this server is
 * the operator's own wish and stored all the same. An announcement that lists this service and states of it wait for
 * their data, as if a client had sent them.
 */
export function policyWithImports(settings: AdmissionSettings): AdmissionPolicy {
  const everyones = createAdmissionPolicy(settings);
  const operators = policyOfOperator(settings);
  return async (event, context) => {
    if (context.source.type !== "import") return everyones(event, context);
    const verdict = await operators(event, context);
    const isWished = !verdict.ok && nothingToUs.has(verdict.code) && !isEphemeral(event.kind);
    return isWished ? { ok: true, action: "store", rule: "import" } : verdict;
  };
}
