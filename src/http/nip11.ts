// The relay information document (NIP-11, GRASP N1–N4). Made of facts that are handed in: only what works is said.

import type { RelayLimits } from "../relay/limits.js";
import { isRead, type Route, type RouteRequest } from "./routes.js";

export interface RelayFacts {
  readonly name: string;
  readonly description: string;
  readonly icon?: string;
  readonly banner?: string;
  /** Hex key of the operator. */
  readonly pubkey?: string;
  /** Hex key of the server itself. */
  readonly self?: string;
  readonly contact?: string;
  readonly software: string;
  readonly version: string;
  readonly supportedNips: readonly number[];
  /** `GRASP-01`, … */
  readonly supportedGrasps: readonly string[];
  readonly repoAcceptanceCriteria: string;
  /** Only when content is curated. */
  readonly curation?: string;
  readonly postingPolicy?: string;
  readonly retention: readonly Readonly<Record<string, unknown>>[];
  /** Who is not on a list may not write everything. */
  readonly restrictedWrites: boolean;
}

export function relayInformation(facts: RelayFacts, limits: RelayLimits): Record<string, unknown> {
  const { name, description, icon, banner, pubkey, self, contact, software, version, curation, retention } = facts;
  return {
    name,
    description,
    ...(icon !== undefined && { icon }),
    ...(banner !== undefined && { banner }),
    ...(pubkey !== undefined && { pubkey }),
    ...(self !== undefined && { self }),
    ...(contact !== undefined && { contact }),
    software,
    version,
    supported_nips: [...facts.supportedNips].sort((a, b) => a - b),
    supported_grasps: facts.supportedGrasps,
    repo_acceptance_criteria: facts.repoAcceptanceCriteria,
    ...(curation !== undefined && { curation }),
    limitation: {
      max_message_length: limits.maxMessageBytes,
      max_subscriptions: limits.maxSubscriptions,
      max_filters: limits.maxFilters,
      max_filter_values: limits.maxFilterValues,
      max_limit: limits.maxLimit,
      default_limit: limits.defaultLimit,
      max_subid_length: limits.maxSubscriptionIdChars,
      max_event_tags: limits.maxEventTags,
      max_content_length: limits.maxEventBytes,
      min_pow_difficulty: 0,
      auth_required: false,
      payment_required: false,
      restricted_writes: facts.restrictedWrites,
      created_at_upper_limit: limits.maxFutureSeconds,
    },
    ...(facts.postingPolicy !== undefined && { posting_policy: facts.postingPolicy }),
    retention,
  };
}

const mediaType = "application/nostr+json";

/** Whether the Accept header lists the type, alone or among others, with or without parameters. */
export function wantsRelayInformation(request: RouteRequest): boolean {
  const accepted = (request.message.headers.accept ?? "").split(",");
  return accepted.some((type) => type.split(";")[0]?.trim().toLowerCase() === mediaType);
}

export function relayInformationRoute(facts: () => RelayFacts, limits: () => RelayLimits): Route {
  return {
    matches: (request) => isRead(request, "/") && wantsRelayInformation(request),
    handle(_request, response) {
      const body = JSON.stringify(relayInformation(facts(), limits()));
      response.writeHead(200, {
        "Content-Type": mediaType,
        "Content-Length": Buffer.byteLength(body),
        // The same path is a page to a browser.
        Vary: "Accept",
      });
      response.end(body);
    },
  };
}
