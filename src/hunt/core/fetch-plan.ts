// What to ask, and where: the URLs worth asking for a repository or a pull request, and for one server the ids in which
// order within how many requests. Pure; the shell consults it between requests. purgatory.md "Hunting".

import type { Config } from "../../config/config.js";
import { type CloneUrl, normalCloneUrl, type ServiceName, servicePart } from "../../net/url.js";
import type { Oid } from "../../nostr/nip34.js";
import type { HuntAnnouncement } from "./messages.js";

interface FetchPlanLimits {
  /** Requests this fetch may still make; look-ups and redirects already made are subtracted by the caller. */
  readonly requests: number;
  readonly unadvertised: number;
}

type RequestOutcome =
  | "arrived"
  /** "not our ref" or "unadvertised object". */
  | "refused"
  /** Anything else: time-out, broken connection, bad pack. Ends the plan. */
  | "failed";

/**
 * What to ask one server for:
 *  1. all needed ids that the server advertises, in one request;
 *  2. at most 8 of the others, because many servers give only what they advertise;
 *  3. "not our ref" and "unadvertised object" name one id at most: the asked set is halved until the bad one stands alone.
 */
export class FetchPlan {
  readonly arrived: Oid[] = [];
  /** Ids that were asked for alone and refused. */
  readonly refused: Oid[] = [];
  #groups: Oid[][];
  #asked: readonly Oid[] | undefined;
  #requestsLeft: number;

  /** `needed` in order of preference: ids refused before come last (the core sees to it). */
  constructor(needed: readonly Oid[], advertised: ReadonlySet<Oid>, limits: FetchPlanLimits) {
    const distinct = [...new Set(needed)];
    const offered = distinct.filter((id) => advertised.has(id));
    const others = distinct.filter((id) => !advertised.has(id)).slice(0, limits.unadvertised);
    this.#groups = [offered, others].filter((group) => group.length > 0);
    this.#requestsLeft = limits.requests;
  }

  /** The ids of the next `git fetch`; undefined when the plan is done or its requests are used up. */
  next(): readonly Oid[] | undefined {
    if (this.#asked) throw new Error("the last request's outcome was not reported");
    if (this.#requestsLeft <= 0) return undefined;
    this.#asked = this.#groups.shift();
    if (this.#asked) this.#requestsLeft--;
    return this.#asked;
  }

  report(outcome: RequestOutcome): void {
    const asked = this.#asked;
    if (!asked) throw new Error("no request is open");
    this.#asked = undefined;
    if (outcome === "arrived") this.arrived.push(...asked);
    else if (outcome === "failed") this.#groups = [];
    else if (asked.length === 1) this.refused.push(...asked);
    else this.#groups.unshift(...halves(asked));
  }
}

function halves(ids: readonly Oid[]): Oid[][] {
  const middle = Math.ceil(ids.length / 2);
  return [ids.slice(0, middle), ids.slice(middle)];
}

export interface HuntUrl {
  readonly url: CloneUrl;
  /** Host without port: what the throttle counts by. */
  readonly domain: string;
  /** Host and port: what a certificate belongs to. */
  readonly place: string;
  /** The same without a default port: what the name of a relay at this server begins with. */
  readonly origin: string;
}

/**
 * The owner's first, few of each announcement and host, none of our own. Texts come from strangers' events: what is not
 * a plain http(s) URL is skipped.
 */
export function selectUrls(
  announcements: readonly HuntAnnouncement[],
  ours: readonly ServiceName[],
  limits: Pick<Config, "gitHuntMaxUrlsPerHost" | "gitHuntMaxUrlsPerRepository" | "gitHuntMaxUrlsPerAnnouncement">,
): HuntUrl[] {
  const ownersFirst = [
    ...announcements.filter((announcement) => announcement.isOwners),
    ...announcements.filter((announcement) => !announcement.isOwners),
  ];
  const candidates = ownersFirst.flatMap(({ clone }) =>
    usable(clone, ours).slice(0, limits.gitHuntMaxUrlsPerAnnouncement),
  );
  return limited(candidates, limits.gitHuntMaxUrlsPerHost, limits.gitHuntMaxUrlsPerRepository);
}

/** A pull request's own clone URLs: for its commit only. */
export function selectPullRequestUrls(
  clone: readonly string[],
  ours: readonly ServiceName[],
  limits: Pick<Config, "gitHuntMaxUrlsPerHost" | "gitHuntMaxUrlsPerPr">,
): HuntUrl[] {
  return limited(usable(clone, ours), limits.gitHuntMaxUrlsPerHost, limits.gitHuntMaxUrlsPerPr);
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
