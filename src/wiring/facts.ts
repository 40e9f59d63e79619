// What the server says about itself, in NIP-11 and on its pages: only what is true of this build and these settings.

import { type Config, isArchiving } from "../config/config.js";
import type { RelayFacts } from "../http/nip11.js";
import type { Pubkey } from "../nostr/ids.js";

/** Names the program; it has no home page of its own yet. */
export const softwareUrl = "urn:software:holdfast";

const supportedNips = [1, 9, 11, 34, 40, 42, 45, 50, 62, 67, 70, 77, 86, 98] as const;

export function acceptanceCriteria(config: Config): string {
  const hosted =
    config.repositoryWhitelist.length > 0
      ? "Repositories on this server's list are hosted when their announcement names this server in clone and relays."
      : "Any repository is hosted whose announcement names this server in its clone and relays tags.";
  return isArchiving(config) ? `${hosted} ${archivedWords(config)}` : hosted;
}

/** Keys and repositories on the list are not named; services are public anyway. */
function archivedWords(config: Config): string {
  const services = config.archiveGraspServices;
  const what = config.archiveAll
    ? ["every other announced repository"]
    : [
        ...(config.archiveWhitelist.length > 0 ? ["repositories on the operator's list"] : []),
        ...(services.length > 0 ? [`repositories hosted on ${services.slice(0, 10).join(", ")}`] : []),
        ...(services.length > 10 ? ["other services"] : []),
      ];
  const how = config.archiveReadOnly ? "read-only: no push is taken for them" : "and pushes for them are taken";
  return `As an archive it also mirrors ${what.join(" and ")}, ${how}.`;
}

/** Said only when something is kept out by hand; what it is, is not shown. */
function curation(config: Config, keepsOut: boolean): string | undefined {
  const lists = [config.repositoryWhitelist, config.repositoryBlacklist, config.eventBlacklist];
  return keepsOut || lists.some((list) => list.length > 0)
    ? "The operator keeps lists of what is hosted here and what is not."
    : undefined;
}

export function relayFacts(config: Config, keepsOut: boolean, serverKey: Pubkey, version: string): RelayFacts {
  const curated = curation(config, keepsOut);
  const operator = config.adminNpubs?.[0] ?? serverKey;
  return {
    name: config.relayName,
    description: config.relayDescription,
    ...(config.relayIcon === undefined ? {} : { icon: config.relayIcon }),
    ...(config.relayBanner === undefined ? {} : { banner: config.relayBanner }),
    pubkey: operator,
    self: serverKey,
    ...(config.relayContact === undefined ? {} : { contact: config.relayContact }),
    software: softwareUrl,
    version,
    supportedNips,
    supportedGrasps: [
      "GRASP-01",
      "GRASP-02",
      ...(isArchiving(config) ? ["GRASP-05"] : []),
      ...(config.grasp06Enable ? ["GRASP-06"] : []),
    ],
    repoAcceptanceCriteria: acceptanceCriteria(config),
    ...(curated === undefined ? {} : { curation: curated }),
    ...(config.relayPostingPolicy === undefined ? {} : { postingPolicy: config.relayPostingPolicy }),
    retention: [{ time: null }],
    restrictedWrites: true,
  };
}

/** `https://host/base`; plain http for a server that is only on this machine. */
export function publicUrls(config: Config): { readonly http: string; readonly relay: string } {
  const isLocal = /^(?:localhost|127\.|\[::1\])/.test(config.domain);
  return { http: `http${isLocal ? "" : "s"}://${config.domain}`, relay: `ws${isLocal ? "" : "s"}://${config.domain}` };
}
