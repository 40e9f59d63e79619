// Does an announcement list this service (relay.md rule 2)? URLs are compared in normal form, never as substrings.

import { hostOfUrl, pathBelowService, type ServiceName, servicePart } from "../net/url.js";
import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";
import type { Announcement, PullRequest } from "../nostr/nip34.js";

export interface ServiceListing {
  readonly inClone: boolean;
  readonly inRelays: boolean;
  /** Set when every clone URL of ours has another path than the repository will have: where it really is. */
  readonly reallyAt: string | undefined;
}

const isHttp = (url: string): boolean => /^https?:/i.test(url);
const isWebSocket = (url: string): boolean => /^wss?:/i.test(url);

function pathBelow(url: string, services: readonly ServiceName[]): string | undefined {
  for (const service of services) {
    const path = pathBelowService(url, service);
    if (path !== undefined) return path;
  }
  return undefined;
}

/** Segments of a path, each percent-decoded once; undefined when one cannot be. */
function decodedSegments(path: string): string[] | undefined {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function isPathOf(path: string, segments: readonly string[]): boolean {
  const decoded = decodedSegments(path);
  return decoded?.length === segments.length && decoded.every((segment, index) => segment === segments[index]);
}

export function serviceListing(announcement: Announcement, services: readonly ServiceName[]): ServiceListing {
  const ours = announcement.clone.filter((url) => isHttp(url) && pathBelow(url, services) !== undefined);
  const inRelays = announcement.relays.some((url) => isWebSocket(url) && pathBelow(url, services) === "");
  const npub = npubOf(announcement.owner);
  const expected = [npub, `${announcement.identifier}.git`];
  const first = ours[0];
  const matches = ours.some((url) => isPathOf(pathBelow(url, services) ?? "", expected));
  const reallyAt =
    first === undefined || matches
      ? undefined
      : `${/^https:/i.test(first) ? "https" : "http"}://${services[0]}/${npub}/${encodeURIComponent(announcement.identifier)}.git`;
  return { inClone: ours.length > 0, inRelays, reallyAt };
}

/** Which tag lacks what, for somebody who wants to host here. */
export function listingAdvice(listing: ServiceListing, services: readonly ServiceName[]): string {
  const service = services[0] ?? "";
  const lacking = [
    ...(listing.inClone
      ? []
      : [`the clone tag lacks a URL of this service (https://${service}/<npub>/<identifier>.git)`]),
    ...(listing.inRelays ? [] : [`the relays tag lacks wss://${service}`]),
  ];
  return lacking.join(" and ");
}

/** As git's URLs allow it: no control bytes, not too long, and announcements have an identifier. */
const canBePath = (identifier: string): boolean =>
  identifier !== "" && !/[\x00-\x1f\x7f]/.test(identifier) && Buffer.byteLength(identifier) <= maxPathIdentifierBytes;

const maxPathIdentifierBytes = 4_096;

/** GRASP-06: the identifier of the `/prs/<signer npub>/<identifier>.git` of ours that a `clone` tag names. */
export function prsIdentifier(
  pullRequest: PullRequest,
  signer: Pubkey,
  services: readonly ServiceName[],
): string | undefined {
  const identifiers = new Set(pullRequest.repositories.map((address) => address.identifier).filter(canBePath));
  for (const url of pullRequest.clone.filter(isHttp)) {
    const path = pathBelow(url, services);
    for (const identifier of path === undefined ? [] : identifiers) {
      if (path !== undefined && isPathOf(path, ["prs", npubOf(signer), `${identifier}.git`])) return identifier;
    }
  }
  return undefined;
}

/** Whether a `relay` tag (NIP-62) means us. */
export const isOurRelay = (url: string, services: readonly ServiceName[]): boolean =>
  isWebSocket(url) && pathBelow(url, services) === "";

/** Clone URLs on one of these services (GRASP-05: matched by host; where a port is named, by that too). */
export const cloneUrlsOnHosts = (announcement: Pick<Announcement, "clone">, hosts: ReadonlySet<string>): string[] =>
  announcement.clone.filter((url) => {
    const host = isHttp(url) ? hostOfUrl(url) : undefined;
    return host !== undefined && (hosts.has(host) || hosts.has(servicePart(url)?.split("/")[0] ?? host));
  });

export const httpCloneUrls = (announcement: Announcement): string[] =>
  announcement.clone.filter((url) => isHttp(url) && hostOfUrl(url) !== undefined);
