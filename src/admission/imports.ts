// What `events import` asks of an event: this server's rules, without the bounds that protect it from strangers. What is
// nothing to this server is the operator's own wish and stored all the same. An announcement that lists this service and
// states of it wait for their data, as if a client had sent them.

import { isEphemeral } from "../nostr/event.js";
import type { RefusalCode } from "../nostr/refusals.js";
import { createAdmissionPolicy } from "./policy.js";
import type { AdmissionConfig, AdmissionSettings } from "./settings.js";
import type { AdmissionPolicy } from "./verdict.js";

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

/** The rules of this server, with its own for what its operator imports. */
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
