// How somebody proves to be an operator, or a member of a private service: by a one-time link into the admin pages or by an
// HTTP request signed with a key (NIP-98); either may open a browser's session. Links and sessions are in memory only: a
// restart ends all of them. Tokens are kept as hashes, so that a look into memory or a timing difference gives none away.

import { createHash, timingSafeEqual } from "node:crypto";
import { isOfNow, signedEventIn, signedForSeconds } from "../access/signed-request.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import { pathBelowService, type ServiceName, withoutTrailing } from "../net/url.js";
import { type EventId, kinds, type NostrEvent, type Pubkey, tagValue } from "../nostr/event.js";
import type { RandomBytes } from "../nostr/keys.js";
import type { Verifier } from "../nostr/verify/pool.js";

export const linkLifeMs = 10 * 60_000;
export const sessionLifeMs = 12 * 60 * 60_000;
/** The oldest gives way; among sessions first the oldest of the same key, so that nobody can end another's. */
const maxLinks = 20;
const maxSessions = 2_000;
const maxSessionsOfOne = 100;

/** What the last action of a session came to; shown once. */
export interface Notice {
  readonly isGood: boolean;
  readonly text: string;
}

interface Session {
  /** Monotonic. */
  readonly endsMs: number;
  readonly who: string;
  notice: Notice | undefined;
}

const tokenBytes = 32;
const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

export class LoginLinks {
  readonly #clock: Clock;
  readonly #random: RandomBytes;
  /** Hash → monotonic time of its end. */
  readonly #links = new Map<string, number>();
  readonly #sessions = new Map<string, Session>();

  constructor(clock: Clock, random: RandomBytes) {
    this.#clock = clock;
    this.#random = random;
  }

  /** A token that opens one session within ten minutes. */
  issue(): string {
    return this.#add(this.#links, this.#clock.monotonicMs() + linkLifeMs, maxLinks);
  }

  /** The session's token; undefined for a token that is unknown, used or too old. */
  redeem(token: string): string | undefined {
    const hash = hashOf(token);
    const endsMs = this.#links.get(hash) ?? 0;
    this.#links.delete(hash);
    return endsMs > this.#clock.monotonicMs() ? this.open("operator") : undefined;
  }

  /** A session for somebody whose identity is proven. */
  open(who: string): string {
    const own = [...this.#sessions].filter(([, session]) => session.who === who).map(([hash]) => hash);
    for (const hash of own.slice(0, Math.max(0, own.length + 1 - maxSessionsOfOne))) this.#sessions.delete(hash);
    const endsMs = this.#clock.monotonicMs() + sessionLifeMs;
    return this.#add(this.#sessions, { endsMs, who, notice: undefined }, maxSessions);
  }

  isSession(token: string): boolean {
    return this.#alive(token) !== undefined;
  }

  /** Whether a link with this token can still be used; uses nothing up. */
  isLink(token: string): boolean {
    return (this.#links.get(hashOf(token)) ?? 0) > this.#clock.monotonicMs();
  }

  /** `operator` when a link opened it, else an npub; undefined when the session is over. */
  whoOf(session: string): string | undefined {
    return this.#alive(session)?.who;
  }

  notice(session: string, notice: Notice): void {
    const found = this.#alive(session);
    if (found) found.notice = notice;
  }

  takeNotice(session: string): Notice | undefined {
    const found = this.#alive(session);
    const notice = found?.notice;
    if (found) found.notice = undefined;
    return notice;
  }

  end(session: string): void {
    this.#sessions.delete(hashOf(session));
  }

  #add<T>(kept: Map<string, T>, value: T, max: number): string {
    const token = Buffer.from(this.#random(tokenBytes)).toString("base64url");
    kept.set(hashOf(token), value);
    const oldest = kept.keys().next().value;
    if (kept.size > max && oldest !== undefined) kept.delete(oldest);
    return token;
  }

  #alive(token: string): Session | undefined {
    const hash = hashOf(token);
    const session = this.#sessions.get(hash);
    if (!session || session.endsMs > this.#clock.monotonicMs()) return session;
    this.#sessions.delete(hash);
    return undefined;
  }
}

/** What a form of this session carries: made of the cookie, which no other site and no script can read. */
export const formToken = (session: string): string =>
  createHash("sha256").update(`holdfast form ${session}`).digest("base64url");

export function isFormToken(given: string, session: string): boolean {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(formToken(session)));
}

export interface SignedRequest {
  readonly authorization: string | undefined;
  readonly method: string;
  /** Below the service's base path, as sent: `/api/why/…`; `/` for the service itself. */
  readonly path: string;
  /** As sent, without the question mark. */
  readonly query: string;
  readonly body: Buffer;
  /** NIP-86 asks for `payload` always; otherwise it is needed when there is a body. */
  readonly needsPayload: boolean;
}

export type Authorised =
  | { readonly ok: true; readonly pubkey: Pubkey }
  | { readonly ok: false; readonly reason: string };

export interface Nip98Parts {
  readonly services: readonly ServiceName[];
  /** Whose tokens are taken, and what others are told. */
  readonly isKnown: (pubkey: Pubkey) => boolean;
  readonly strangersAreTold: string;
  /** A private service gives one reason for everything, and looks at every signature, so that nobody can try keys out. */
  readonly isPrivate: boolean;
  readonly verifier: Verifier;
  readonly clock: Clock;
}

/** Only valid tokens of known keys are remembered, so a stranger cannot fill this. Full means refused, never forgotten. */
const maxRemembered = 10_000;

const no = (reason: string): Authorised => ({ ok: false, reason });

/**
 * Each token is good for one request, within a minute, for this service's URL, its method and its body; a second use is
 * refused (threats.md row 28). Strangers learn only that the token is not accepted.
 */
export class Nip98 {
  readonly #parts: Nip98Parts;
  /** Token → second from which its time has run out anyway. */
  readonly #used = new Map<EventId, number>();

  constructor(parts: Nip98Parts) {
    this.#parts = parts;
  }

  async authorise(request: SignedRequest): Promise<Authorised> {
    const answer = await this.#judge(request);
    return answer.ok || !this.#parts.isPrivate ? answer : no(this.#parts.strangersAreTold);
  }

  async #judge(request: SignedRequest): Promise<Authorised> {
    const { clock, verifier, isKnown, strangersAreTold, isPrivate } = this.#parts;
    const event = signedEventIn(request.authorization);
    if (!event) return no("an Authorization header with a NIP-98 event is needed");
    if (!isPrivate && !isKnown(event.pubkey)) return no(strangersAreTold);
    const fault = this.#faultOf(event, request);
    if (fault !== undefined) return no(fault);
    if (!(await verifier.verify(event))) return no("the token's signature is not valid");
    if (!isKnown(event.pubkey)) return no(strangersAreTold);
    return this.#takeOnce(event, unixSeconds(clock))
      ? { ok: true, pubkey: event.pubkey }
      : no("the token was used before");
  }

  /** Cheap checks first: a signature is looked at only when the token could be for this request. */
  #faultOf(event: NostrEvent, request: SignedRequest): string | undefined {
    if (event.kind !== kinds.httpAuth) return `the token is not of kind ${kinds.httpAuth}`;
    if (!isOfNow(event, this.#parts.clock)) return "the token's time is not now";
    if (tagValue(event, "method")?.toUpperCase() !== request.method) return "the token is for another method";
    if (!this.#isForUrl(tagValue(event, "u") ?? "", request)) return "the token is for another URL";
    const payload = tagValue(event, "payload");
    if (payload === undefined && !request.needsPayload && request.body.length === 0) return undefined;
    const hash = createHash("sha256").update(request.body).digest("hex");
    return payload?.toLowerCase() === hash ? undefined : "the token is for another body";
  }

  /** Our own name decides, not the Host header a proxy or a stranger wrote. */
  #isForUrl(text: string, request: SignedRequest): boolean {
    const wanted = withoutTrailing(request.path, "/");
    if (!this.#parts.services.some((service) => pathBelowService(text, service) === wanted)) return false;
    const mark = text.indexOf("?");
    return (mark < 0 ? "" : (text.slice(mark + 1).split("#")[0] ?? "")) === request.query;
  }

  #takeOnce(event: NostrEvent, now: number): boolean {
    for (const [id, until] of this.#used) if (until < now) this.#used.delete(id);
    if (this.#used.has(event.id) || this.#used.size >= maxRemembered) return false;
    this.#used.set(event.id, event.created_at + signedForSeconds + 1);
    return true;
  }
}
