// The rules of this server for a command that works on its store while it does not run. What git has to do follows at
// the next start.

import { createAdmissionPolicy } from "../admission/policy.js";
import type { AdmissionCaps } from "../admission/settings.js";
import type { AdmissionPolicy } from "../admission/verdict.js";
import { hourlyCounter } from "../base/budget/rates.js";
import type { Config } from "../config/config.js";
import { loadServerKey } from "../config/server-key.js";
import { serviceName } from "../net/url.js";
import { SecretKey } from "../nostr/keys.js";
import { admissionCaps, admissionLists, archiveSettings } from "./limits.js";

/** An operator moves a whole server at once: what protects against strangers' floods would be in the way. */
export const operatorsCaps: Partial<AdmissionCaps> = {
  announcementsPerKey: Number.MAX_SAFE_INTEGER,
  waitingAnnouncements: Number.MAX_SAFE_INTEGER,
  relatedPerRepository: 10_000,
  waitingBytes: 2 ** 30,
  graspLists: Number.MAX_SAFE_INTEGER,
};

/** Undefined when it cannot be read or is none. */
export function serverSecret(config: Config): SecretKey | undefined {
  const key = loadServerKey(config);
  return key.ok ? SecretKey.fromHex(key.secretHex) : undefined;
}

/** Undefined when the server's key or domain cannot be used. `whole`: for moving a whole server here. */
export function offlinePolicy(config: Config, options: { readonly whole?: boolean } = {}): AdmissionPolicy | undefined {
  const secret = serverSecret(config);
  const service = serviceName(config.domain);
  if (!secret || !service) return undefined;
  const lists = admissionLists(config);
  const caps = { ...admissionCaps(config), ...(options.whole ? operatorsCaps : {}) };
  const archive = archiveSettings(config);
  return createAdmissionPolicy({
    services: [service],
    serverKey: secret.pubkey,
    adminKeys: () => new Set(config.adminNpubs ?? [secret.pubkey]),
    lists: () => lists,
    archive: () => archive,
    grasp06: config.grasp06Enable,
    caps: () => caps,
    newAnnouncements: hourlyCounter(),
    graspLists: hourlyCounter(),
  });
}
