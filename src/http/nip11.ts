// What the server says about itself: facts that are true of this build and these settings, the information document
// (NIP-11, GRASP N1–N4) made of them, and small documents other programs look for: `/robots.txt` and NIP-05's
// `/.well-known/nostr.json` for `_`.

import { type Config, isArchiving } from "../config/config.js";
import type { Pubkey } from "../nostr/event.js";
import type { RelayLimits } from "../relay/limits.js";
import { isRead, type Route, type RouteRequest, sendText } from "./routes.js";

export interface RelayFacts {
  readonly name: string;
  readonly description: string;
  readonly icon?: string | undefined;
  readonly banner?: string | undefined;
  /** The operator's. */
  readonly pubkey?: Pubkey;
  /** The server's own. */
  readonly self?: Pubkey;
  readonly contact?: string | undefined;
  readonly software: string;
  readonly version: string;
  readonly supportedNips: readonly number[];
  /** `GRASP-01`, … */
  readonly supportedGrasps: readonly string[];
  readonly repoAcceptanceCriteria: string;
  /** Only when content is curated. */
  readonly curation?: string | undefined;
  readonly postingPolicy?: string | undefined;
  readonly retention: readonly Readonly<Record<string, unknown>>[];
  /** Who is not on a list may not write everything. */
  readonly restrictedWrites: boolean;
  /** GRASP-08: nothing is said to strangers beyond this document. */
  readonly isPrivate: boolean;
}

function relayInformation(facts: RelayFacts, limits: RelayLimits): Record<string, unknown> {
  const { name, description, icon, banner, pubkey, self, contact, software, version, curation, retention } = facts;
  // What is undefined is left out of JSON.
  return {
    ...{ name, description, icon, banner, pubkey, self, contact, software, version },
    supported_nips: [...facts.supportedNips].sort((a, b) => a - b),
    supported_grasps: facts.supportedGrasps,
    repo_acceptance_criteria: facts.repoAcceptanceCriteria,
    curation,
    limitation: {
      max_message_length: limits.maxMessageBytes,
      max_subscriptions: limits.maxSubscriptionsPerConnection,
      max_filters: limits.maxFiltersPerReq,
      max_filter_values: limits.maxFilterValues,
      max_limit: limits.maxLimit,
      default_limit: limits.defaultLimit,
      max_subid_length: limits.maxSubscriptionIdChars,
      max_event_tags: limits.maxEventTags,
      max_content_length: limits.maxEventBytes,
      min_pow_difficulty: 0,
      auth_required: facts.isPrivate,
      payment_required: false,
      restricted_writes: facts.restrictedWrites,
      created_at_upper_limit: limits.maxFutureSecs,
    },
    posting_policy: facts.postingPolicy,
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

/** Names the program; it has no home page of its own yet. */
const softwareUrl = "urn:software:holdfast";

const supportedNips = [1, 9, 11, 34, 40, 42, 45, 50, 62, 67, 70, 77, 86, 98] as const;

function acceptanceCriteria(config: Config): string {
  if (config.privateMode) return "This is a private service: only its members may use it.";
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
  if (config.privateMode) return undefined;
  const lists = [config.repositoryWhitelist, config.repositoryBlacklist, config.eventBlacklist];
  return keepsOut || lists.some((list) => list.length > 0)
    ? "The operator keeps lists of what is hosted here and what is not."
    : undefined;
}

export function relayFacts(config: Config, keepsOut: boolean, serverKey: Pubkey, version: string): RelayFacts {
  return {
    name: config.relayName,
    description: config.relayDescription,
    icon: config.relayIcon,
    banner: config.relayBanner,
    pubkey: config.adminNpubs?.[0] ?? serverKey,
    self: serverKey,
    contact: config.relayContact,
    software: softwareUrl,
    version,
    supportedNips,
    supportedGrasps: [
      "GRASP-01",
      "GRASP-02",
      ...(config.syncPlusEnabled ? ["GRASP-03"] : []),
      ...(isArchiving(config) ? ["GRASP-05"] : []),
      ...(config.grasp06Enable ? ["GRASP-06"] : []),
      ...(config.privateMode ? ["GRASP-08"] : []),
    ],
    repoAcceptanceCriteria: acceptanceCriteria(config),
    curation: curation(config, keepsOut),
    postingPolicy: config.relayPostingPolicy,
    retention: [{ time: null }],
    restrictedWrites: true,
    isPrivate: config.privateMode,
  };
}

/** Pages may be indexed, code too; what is endless, or says nothing to a reader, may not. */
const robots = [
  "User-agent: *",
  ...["/api/", "/admin", "/metrics"].map((path) => `Disallow: ${path}`),
  ...[
    "commit/",
    "commits/",
    "compare/",
    "blame/",
    "raw/",
    "archive/",
    "find/",
    "text/",
    "pulls/*/",
    "info/",
    "objects/",
    "git-",
  ].map((path) => `Disallow: /*.git/${path}`),
  "",
];

const privateRobots = ["User-agent: *", "Disallow: /", ""];

export function wellKnownRoutes(ownKey: Pubkey, relayUrl: string, isPrivate: boolean): Route[] {
  const lines = isPrivate ? privateRobots : robots;
  return [
    {
      matches: (request) => isRead(request, "/robots.txt"),
      handle: (_request, response) => sendText(response, 200, "text/plain; charset=utf-8", lines.join("\n")),
    },
    {
      matches: (request) => isRead(request, "/.well-known/nostr.json"),
      handle(request, response) {
        const isAsked = (request.query.get("name") ?? "_") === "_";
        const body = isAsked ? { names: { _: ownKey }, relays: { [ownKey]: [relayUrl] } } : { names: {} };
        sendText(response, 200, "application/json; charset=utf-8", JSON.stringify(body));
      },
    },
  ];
}
