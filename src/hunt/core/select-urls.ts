// Which URLs are worth asking: the owner's first, few of each announcement and host, none of our own. Pure.
// purgatory.md "Hunting". Texts come from strangers' events: what is not a plain http(s) URL is skipped.

import { type CloneUrl, normalCloneUrl, type ServiceName, servicePart } from "../../net/url.js";
import type { UrlLimits } from "./config.js";
import type { HuntAnnouncement } from "./messages.js";

export interface HuntUrl {
  readonly url: CloneUrl;
  /** Host without port: what the throttle counts by. */
  readonly domain: string;
  /** Host and port: what a certificate belongs to. */
  readonly place: string;
  /** The same without a default port: what the name of a relay at this server begins with. */
  readonly origin: string;
}

export function selectUrls(
  announcements: readonly HuntAnnouncement[],
  ours: readonly ServiceName[],
  limits: UrlLimits,
): HuntUrl[] {
  const ownersFirst = [
    ...announcements.filter((announcement) => announcement.isOwners),
    ...announcements.filter((announcement) => !announcement.isOwners),
  ];
  const candidates = ownersFirst.flatMap(({ clone }) => usable(clone, ours).slice(0, limits.perAnnouncement));
  return limited(candidates, limits.perHost, limits.perRepository);
}

/** A pull request's own clone URLs: for its commit only. */
export function selectPullRequestUrls(
  clone: readonly string[],
  ours: readonly ServiceName[],
  limits: UrlLimits,
): HuntUrl[] {
  return limited(usable(clone, ours), limits.perHost, limits.perPullRequest);
}

/** Host without port of a URL that was accepted above; also for hosts that redirects name. */
export const domainOf = (host: string): string => host.toLowerCase().replace(/\.$/, "");

/** Of a service, without its path. */
export const originOf = (part: string): string => part.replace(/\/.*/s, "");

/** A server listed by http is tried by https first; each try is a connection of its own. */
export const spellingsToTry = (url: CloneUrl): CloneUrl[] =>
  url.startsWith("http:") ? [url.replace(/^http:/, "https:") as CloneUrl, url] : [url];

function usable(clone: readonly string[], ours: readonly ServiceName[]): HuntUrl[] {
  const found = new Map<string, HuntUrl>();
  for (const text of clone) {
    const url = normalCloneUrl(text);
    const part = url && servicePart(url);
    if (!url || !part || isOurs(part, ours)) continue;
    const { hostname, port, protocol } = new URL(url);
    // `host.` would be a second domain for the throttle; the outbound guard refuses it too.
    if (hostname.endsWith(".")) continue;
    const known = found.get(part);
    if (known && (known.url.startsWith("https:") || protocol === "http:")) continue;
    const place = `${hostname}:${port === "" ? (protocol === "https:" ? 443 : 80) : port}`;
    found.set(part, { url, domain: domainOf(hostname), place, origin: originOf(part) });
  }
  return [...found.values()];
}

const isOurs = (part: string, ours: readonly ServiceName[]): boolean =>
  ours.some((service) => part === service || part.startsWith(`${service}/`));

function limited(candidates: readonly HuntUrl[], perHost: number, inAll: number): HuntUrl[] {
  const chosen: HuntUrl[] = [];
  const seen = new Set<string>();
  const perDomain = new Map<string, number>();
  for (const candidate of candidates) {
    if (chosen.length === inAll) break;
    const count = perDomain.get(candidate.domain) ?? 0;
    const key = servicePart(candidate.url) ?? candidate.url;
    if (seen.has(key) || count === perHost) continue;
    seen.add(key);
    perDomain.set(candidate.domain, count + 1);
    chosen.push(candidate);
  }
  return chosen;
}
