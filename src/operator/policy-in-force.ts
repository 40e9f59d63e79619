// The rules for events as this server has them: settings, with what operators changed at run time laid over them. The
// same for a running server and for a command that works on its data while none runs.

import { createAdmissionPolicy } from "../admission/policy.js";
import {
  type AdmissionCaps,
  type AdmissionSettings,
  admissionCaps,
  admissionLists,
  archiveSettings,
} from "../admission/settings.js";
import type { AdmissionPolicy } from "../admission/verdict.js";
import { hourlyCounter } from "../base/budget/rates.js";
import type { Config } from "../config/config.js";
import { memo } from "../config/load.js";
import type { ServiceName } from "../net/url.js";
import { isEphemeral } from "../nostr/event.js";
import type { Pubkey } from "../nostr/ids.js";
import type { RefusalCode } from "../nostr/refusals.js";
import { refusingKinds } from "./lists.js";
import type { RunTimeRules } from "./rules.js";

export interface PolicyInForce {
  /** The settings with the run-time rules over them. */
  readonly inForce: () => Config;
  readonly settings: AdmissionSettings;
  readonly policy: AdmissionPolicy;
  /** For moving a whole server here (`repos import`): the operator's bounds, and what is nothing to us is refused. */
  readonly movingPolicy: AdmissionPolicy;
}

/** An operator moves a whole server at once: what protects against strangers' floods would be in the way. */
const operatorsCaps: Partial<AdmissionCaps> = {
  announcementsPerKey: Number.MAX_SAFE_INTEGER,
  waitingAnnouncements: Number.MAX_SAFE_INTEGER,
  relatedPerRepository: 10_000,
  waitingBytes: 2 ** 30,
  graspLists: Number.MAX_SAFE_INTEGER,
};

export function policyInForce(
  config: () => Config,
  rules: RunTimeRules,
  serverKey: Pubkey,
  service: ServiceName,
): PolicyInForce {
  const inForce = (): Config => rules.over(config());
  const settings: AdmissionSettings = {
    services: [service],
    serverKey,
    adminKeys: memo(inForce, ({ adminNpubs }) => new Set(adminNpubs ?? [serverKey])),
    lists: memo(inForce, admissionLists),
    archive: memo(inForce, archiveSettings),
    grasp06: config().grasp06Enable,
    caps: memo(inForce, admissionCaps),
    newAnnouncements: hourlyCounter(),
    graspLists: hourlyCounter(),
  };
  const moving = createAdmissionPolicy({ ...settings, caps: () => ({ ...settings.caps(), ...operatorsCaps }) });
  const everyones = createAdmissionPolicy(settings);
  return {
    inForce,
    settings,
    policy: refusingKinds(storingImports(everyones, moving), rules),
    movingPolicy: refusingKinds(moving, rules),
  };
}

/** Refusals that only say: this concerns no repository here. */
const nothingToUs = new Set<RefusalCode>(["service-not-listed", "unrelated", "no-announcement", "not-a-maintainer"]);

/**
 * What `events import` asks of an event: this server's rules, without the bounds that protect it from strangers. What is
 * nothing to this server is the operator's own wish and stored all the same. An announcement that lists this service and
 * states of it wait for their data, as if a client had sent them.
 */
const storingImports =
  (everyones: AdmissionPolicy, moving: AdmissionPolicy): AdmissionPolicy =>
  async (event, context) => {
    if (context.source.type !== "import") return everyones(event, context);
    const verdict = await moving(event, context);
    const isWished = !verdict.ok && nothingToUs.has(verdict.code) && !isEphemeral(event.kind);
    return isWished ? { ok: true, action: "store", rule: "import" } : verdict;
  };
