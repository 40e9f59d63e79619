// The rules for events as this server has them: settings, with what operators changed at run time on top.

import { createAdmissionPolicy } from "../admission/policy.js";
import type { AdmissionSettings } from "../admission/settings.js";
import type { AdmissionPolicy } from "../admission/verdict.js";
import { hourlyCounter } from "../base/budget/rates.js";
import type { Config } from "../config/config.js";
import type { LiveConfig } from "../config/load.js";
import { memo } from "../config/load.js";
import type { ServiceName } from "../net/url.js";
import type { SecretKey } from "../nostr/keys.js";
import { refusingKinds } from "../operator/lists.js";
import { RunTimeRules } from "../operator/rules.js";
import type { Store } from "../store/port.js";
import { storingImports } from "./import-policy.js";
import { admissionCaps, admissionLists, archiveSettings } from "./limits.js";
import { operatorsCaps } from "./offline-policy.js";

export interface AdmissionParts {
  readonly live: LiveConfig;
  readonly store: Store;
  readonly secret: SecretKey;
  readonly service: ServiceName;
  /** Instead of GRASP's rules; for tests and benchmarks of the relay alone. */
  readonly policy?: AdmissionPolicy;
}

export interface Admission {
  readonly rules: RunTimeRules;
  /** The settings with the run-time rules over them. */
  readonly inForce: () => Config;
  readonly settings: AdmissionSettings;
  readonly policy: AdmissionPolicy;
}

export async function buildAdmission({ live, store, secret, service, policy }: AdmissionParts): Promise<Admission> {
  const rules = new RunTimeRules(store);
  await rules.refresh();
  const inForce = (): Config => rules.over(live.current);
  const settings: AdmissionSettings = {
    services: [service],
    serverKey: secret.pubkey,
    adminKeys: memo(inForce, ({ adminNpubs }) => new Set(adminNpubs ?? [secret.pubkey])),
    lists: memo(inForce, admissionLists),
    archive: memo(inForce, archiveSettings),
    grasp06: live.current.grasp06Enable,
    caps: memo(inForce, admissionCaps),
    newAnnouncements: hourlyCounter(),
    graspLists: hourlyCounter(),
  };
  const forImports = createAdmissionPolicy({ ...settings, caps: () => ({ ...settings.caps(), ...operatorsCaps }) });
  const everyones = storingImports(createAdmissionPolicy(settings), forImports);
  return { rules, inForce, settings, policy: policy ?? refusingKinds(everyones, rules) };
}
