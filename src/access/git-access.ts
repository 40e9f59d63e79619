// Who asks for a repository by git's protocol (GRASP-08 "Git"), before anything is looked up: by an event of kind 27235 for
// the repository's root URL, or by a machine token as the password of Basic. Git's requests and those for large files ask
// here, on public services too, where an identity is not needed and may be shown. An identity never replaces the right to push:
// that comes from signed states alone.

import { ipGroup, perMinute, Rates } from "../base/budget/rates.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import { isOver, tokenRow } from "../catalogue/machine-tokens.js";
import { type RepositoryArea, repositoryAddress } from "../catalogue/repositories.js";
import { pathBelowService, type ServiceName } from "../net/url.js";
import { kinds, type NostrEvent, type Pubkey, tagValue } from "../nostr/event.js";
import { parseNpub } from "../nostr/nip19.js";
import type { Verifier } from "../nostr/verify/pool.js";
import type { TableReader } from "../store/port.js";
import type { Members } from "./members.js";
import type { CredentialRefused } from "./metrics.js";
import { isOfNow, signedEventIn } from "./signed-request.js";

/** A repository as its URL names it; whether there is one is not known here. */
export interface GitPlace {
  readonly area: RepositoryArea;
  readonly npub: string;
  readonly identifier: string;
}

export interface GitCaller {
  readonly pubkey: Pubkey;
  readonly via: "nostr" | "token";
  /** False for a token that may only read. */
  readonly mayPush: boolean;
}

export type GitIdentity =
  | { readonly ok: true; readonly caller: GitCaller }
  /** `too-many`: this address has shown too many bad ones; nothing was looked at. */
  | { readonly ok: false; readonly reason: "unknown" | "too-many" };

interface GitAccessParts {
  readonly members: Members;
  readonly store: TableReader;
  readonly verifier: Verifier;
  readonly clock: Clock;
  /** The names under which members sign: that of NGIT_PRIVATE_PUBLIC_ORIGIN, or those of the service. */
  readonly services: readonly ServiceName[];
  readonly refused: CredentialRefused;
}

/** What one address may show that opens nothing. A signature is counted apart: who guesses tokens locks no signer out. */
const badTokensPerMinute = 60;
const badSignaturesPerMinute = 600;

export class GitAccess {
  readonly #parts: GitAccessParts;
  readonly #badTokens = new Rates(() => perMinute(badTokensPerMinute));
  readonly #badSignatures = new Rates(() => perMinute(badSignaturesPerMinute));

  constructor(parts: GitAccessParts) {
    this.#parts = parts;
  }

  /** `place` is undefined where the path names no repository: nothing opens that. */
  async identify(authorization: string | undefined, place: GitPlace | undefined, ip: string): Promise<GitIdentity> {
    if (authorization === undefined) return { ok: false, reason: "unknown" };
    const { clock, members } = this.#parts;
    const address = ipGroup(ip);
    const isToken = /^Basic /i.test(authorization);
    const failures = isToken ? this.#badTokens : this.#badSignatures;
    const isTooMany = failures.waitMs(address, clock.monotonicMs()) > 0;
    if (isTooMany) return this.#refuse(isToken, "too-many");
    const caller = place && ((await this.#signer(authorization, place)) ?? (await this.#holder(authorization, place)));
    // Asked last and in the same way for everybody: how long an answer takes must not tell whose key is a member's.
    if (caller && members.has(caller.pubkey)) return { ok: true, caller };
    failures.spend(address, clock.monotonicMs(), 1);
    return this.#refuse(isToken, "unknown");
  }

  #refuse(isToken: boolean, reason: "unknown" | "too-many"): GitIdentity {
    this.#parts.refused(isToken ? "token" : "signature", reason);
    return { ok: false, reason };
  }

  async #signer(authorization: string, place: GitPlace): Promise<GitCaller | undefined> {
    const { clock, verifier, services } = this.#parts;
    const event = signedEventIn(authorization);
    if (!event || !isForRepository(event, place, services) || !isOfNow(event, clock)) return undefined;
    if (!(await verifier.verify(event))) return undefined;
    return { pubkey: event.pubkey, via: "nostr", mayPush: true };
  }

  async #holder(authorization: string, place: GitPlace): Promise<GitCaller | undefined> {
    const token = tokenIn(authorization);
    const row = token === undefined ? undefined : await tokenRow(this.#parts.store, token);
    if (!row || isOver(row, unixSeconds(this.#parts.clock))) return undefined;
    if (row.repository !== null && row.repository !== addressOf(place)) return undefined;
    return { pubkey: row.member, via: "token", mayPush: row.right === "push" };
  }
}

/** `u` is the repository's root, and the method is GET whatever is asked: one signature serves a whole fetch or push. */
export function isForRepository(event: NostrEvent, place: GitPlace, services: readonly ServiceName[]): boolean {
  if (event.kind !== kinds.httpAuth || tagValue(event, "method") !== "GET") return false;
  const url = tagValue(event, "u") ?? "";
  if (/[?#]|\/$/.test(url)) return false;
  const wanted = [...(place.area === "prs" ? ["prs"] : []), place.npub, `${place.identifier}.git`];
  return services.some((service) => {
    const path = pathBelowService(url, service);
    const segments = path === undefined ? undefined : decodedSegments(path);
    return segments?.length === wanted.length && segments.every((segment, index) => segment === wanted[index]);
  });
}

/** Each segment percent-decoded exactly once, as in the paths of requests. */
function decodedSegments(path: string): string[] | undefined {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function addressOf({ area, npub, identifier }: GitPlace): string | undefined {
  const owner = parseNpub(npub);
  return owner && repositoryAddress({ owner, identifier, area });
}

/** As password with any user name, or as user name with an empty password. */
export function tokenIn(authorization: string): string | undefined {
  const encoded = /^Basic +([A-Za-z0-9+/]+=*)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 0) return undefined;
  return colon === text.length - 1 ? text.slice(0, colon) : text.slice(colon + 1);
}
