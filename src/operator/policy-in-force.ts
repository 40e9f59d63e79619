// The rules for events as this server has them: settings, with what operators changed at run time laid over them. The
// same for a running server and for a command that works on its data while none runs.

import { policyOfOperator, policyWithImports } from "../admission/imports.js";
import { type AdmissionSettings, admissionSettings } from "../admission/settings.js";
import type { AdmissionPolicy } from "../admission/verdict.js";
import type { Config } from "../config/config.js";
import type { ServiceName } from "../net/url.js";
import type { Pubkey } from "../nostr/ids.js";
import type { RunTimeRules } from "./rules.js";

export interface PolicyInForce {
  /** The settings with the run-time rules over them. */
  readonly inForce: () => Config;
  readonly settings: AdmissionSettings;
  readonly policy: AdmissionPolicy;
  /** For moving a whole server here (`repos import`): the operator's bounds, and what is nothing to us is refused. */
  readonly movingPolicy: AdmissionPolicy;
}

export function policyInForce(
  config: () => Config,
  rules: RunTimeRules,
  serverKey: Pubkey,
  service: ServiceName,
): PolicyInForce {
  const inForce = (): Config => rules.over(config());
  const settings = admissionSettings(inForce, serverKey, service, () => rules.refusedKinds);
  return { inForce, settings, policy: policyWithImports(settings), movingPolicy: policyOfOperator(settings) };
}
