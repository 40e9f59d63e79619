// The admission policy: what is always refused, then one rule by kind (relay.md, "Which events are accepted"). Order is meaning:
// what stands higher is not overridden by what stands lower.

import { isEphemeral, type VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { alwaysRefused } from "./always-refused.js";
import { judgeAnnouncement } from "./announcement.js";
import { judgeDeletion, judgeVanish } from "./deletion.js";
import { type ApproximateCount, approximateCount, judgeGraspList, judgeProfile } from "./profiles.js";
import { judgePullRequest } from "./pull-request.js";
import { judgeRelated } from "./related.js";
import type { AdmissionSettings } from "./settings.js";
import { judgeState } from "./state.js";
import type { AdmissionContext, AdmissionPolicy, Verdict } from "./verdict.js";
import { refused, relayed, stored } from "./verdict.js";

export function createAdmissionPolicy(settings: AdmissionSettings): AdmissionPolicy {
  const graspLists = approximateCount();
  return async (event, context) =>
    (await alwaysRefused(event, context, settings)) ?? (await judgeByKind(event, context, settings, graspLists));
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
