// The admission policy: the gate, then one rule by kind (relay.md, "Which events are accepted"). Order is meaning:
// what stands higher is not overridden by what stands lower.

import { isEphemeral, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { announcementOf, pullRequestOf, stateOf } from "../nostr/nip34.js";
import { announcementFault, decideAnnouncement } from "./announcement.js";
import { readAnnouncementFacts } from "./announcement-facts.js";
import { judgeGraspList, judgeProfile } from "./companions.js";
import { judgeDeletion } from "./deletion.js";
import { refusedAtTheGate } from "./gate.js";
import type { AdmissionContext, AdmissionPolicy, Verdict } from "./policy.js";
import { judgePullRequest } from "./pull-request.js";
import { judgeRelated } from "./related.js";
import type { AdmissionSettings } from "./settings.js";
import { decideState, readStateFacts } from "./state.js";
import { createTally, type Tally } from "./tally.js";
import { judgeVanish } from "./vanish.js";
import { refused, relayed, stored } from "./verdicts.js";

export function createAdmissionPolicy(settings: AdmissionSettings): AdmissionPolicy {
  const graspLists = createTally();
  return async (event, context) =>
    (await refusedAtTheGate(event, context, settings)) ?? (await judgeByKind(event, context, settings, graspLists));
}

async function judgeByKind(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
  graspLists: Tally,
): Promise<Verdict> {
  switch (event.kind) {
    case kinds.announcement:
      return judgeAnnouncement(event, context, settings);
    case kinds.state:
      return judgeState(event, context, settings);
    case kinds.pullRequest:
    case kinds.pullRequestUpdate:
      return judgePull(event, context, settings);
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

async function judgeAnnouncement(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const announcement = announcementOf(event);
  const fault = announcementFault(event);
  if (!announcement || fault !== undefined)
    return refused("announcement", "bad-announcement", fault ?? "not an announcement");
  const { source, nowSeconds } = context;
  const caps = settings.caps();
  const facts = await readAnnouncementFacts(event, announcement, context, settings);
  const verdict = decideAnnouncement({ event, facts, source, nowSeconds, caps, services: settings.services });
  const isNewcomer = verdict.ok && verdict.action === "hold" && verdict.isNew && source.type === "client";
  if (
    !isNewcomer ||
    settings.newAnnouncements.allows(source.ip, event.id, nowSeconds, caps.announcementsPerIpAndHour)
  ) {
    return verdict;
  }
  const sentence = `more than ${caps.announcementsPerIpAndHour} new repositories an hour from this address: try again later`;
  return refused("waiting-room", "rate-limited", sentence, verdict.facts);
}

async function judgeState(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const state = stateOf(event);
  if (!state) return refused("state", "bad-state", "not a state");
  const facts = await readStateFacts(state, context, settings);
  return decideState({ event, state, facts, context, caps: settings.caps() });
}

async function judgePull(
  event: VerifiedEvent,
  context: AdmissionContext,
  settings: AdmissionSettings,
): Promise<Verdict> {
  const pullRequest = pullRequestOf(event);
  if (!pullRequest) return refused("pull-request", "bad-event", "not a pull request");
  return judgePullRequest(event, pullRequest, context, settings);
}
