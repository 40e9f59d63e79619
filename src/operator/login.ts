// How somebody proves to be an operator, or a member of a private service: by a one-time link into the admin pages or by an
// HTTP request signed with a key (NIP-98); either may open a browser's session. A restart ends all of them, unless the server
// is one of a cluster. Tokens are kept as hashes, so that a look at what is kept or a timing difference gives none away.

import { createHash, timingSafeEqual } from "node:crypto";
import type { CredentialRefused } from "../access/metrics.js";
import { isOfNow, signedEventIn, signedForSeconds } from "../access/signed-request.js";
import type { Clock } from "../base/clock.js";
import { pathBelowService, type ServiceName, withoutTrailing } from "../net/url.js";
import { kinds, type NostrEvent, type Pubkey, tagValue } from "../nostr/event.js";
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
  readonly endsMs: number;
  readonly who: string;
  readonly notice?: Notice;
}

interface Ending {
  readonly endsMs: number;
}

/**
 * A small map whose values end by themselves. A server that is alone has it in memory; machines of a cluster have it in rows,
 * because the next request of a browser may come to another of them (operator/row-shelf.ts).
 */
export interface Shelf<T extends Ending> {
  nowMs(): number;
  get(key: string): Promise<T | undefined>;
  /** What has not ended, the oldest first. What the work changes is kept; works run one after the other. */
  change<R>(work: (kept: Map<string, T>) => R): Promise<R>;
}

/** By which time values end; rows know the wall's alone. */
export type Shelves = <T extends Ending>(name: string, time: "steady" | "wall") => Shelf<T>;

export const memoryShelves =
  (clock: Clock): Shelves =>
  <T extends Ending>(_name: string, time: "steady" | "wall"): Shelf<T> => {
    const kept = new Map<string, T>();
    const nowMs = (): number => (time === "steady" ? clock.monotonicMs() : clock.nowMs());
    const dropEnded = (): void => {
      for (const [key, { endsMs }] of kept) if (endsMs <= nowMs()) kept.delete(key);
    };
    return {
      nowMs,
      async get(key) {
        const value = kept.get(key);
        return value && value.endsMs > nowMs() ? value : undefined;
      },
      async change(work) {
        dropEnded();
        return work(kept);
      },
    };
  };

const tokenBytes = 32;
const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

export class LoginLinks {
  readonly #random: RandomBytes;
  readonly #links: Shelf<Ending>;
  readonly #sessions: Shelf<Session>;

  constructor(shelves: Shelves, random: RandomBytes) {
    this.#random = random;
    this.#links = shelves("link", "steady");
    this.#sessions = shelves("session", "steady");
  }

  /** A token that opens one session within ten minutes. */
  issue(): Promise<string> {
    const endsMs = this.#links.nowMs() + linkLifeMs;
    return this.#links.change((kept) => this.#add(kept, { endsMs }, maxLinks));
  }

  /** The session's token; undefined for a token that is unknown, used or too old. */
  async redeem(token: string): Promise<string | undefined> {
    const isGood = await this.#links.change((kept) => kept.delete(hashOf(token)));
    return isGood ? await this.open("operator") : undefined;
  }

  /** A session for somebody whose identity is proven. */
  open(who: string): Promise<string> {
    const endsMs = this.#sessions.nowMs() + sessionLifeMs;
    return this.#sessions.change((kept) => {
      const own = [...kept].filter(([, session]) => session.who === who).map(([hash]) => hash);
      for (const hash of own.slice(0, Math.max(0, own.length + 1 - maxSessionsOfOne))) kept.delete(hash);
      return this.#add(kept, { endsMs, who }, maxSessions);
    });
  }

  async isSession(token: string): Promise<boolean> {
    return (await this.whoOf(token)) !== undefined;
  }

  /** Whether a link with this token can still be used; uses nothing up. */
  async isLink(token: string): Promise<boolean> {
    return (await this.#links.get(hashOf(token))) !== undefined;
  }

  /** `operator` when a link opened it, else an npub; undefined when the session is over. */
  async whoOf(session: string): Promise<string | undefined> {
    return (await this.#sessions.get(hashOf(session)))?.who;
  }

  async notice(session: string, notice: Notice): Promise<void> {
    await this.#setNotice(hashOf(session), notice);
  }

  async takeNotice(session: string): Promise<Notice | undefined> {
    const hash = hashOf(session);
    const notice = (await this.#sessions.get(hash))?.notice;
    return notice && (await this.#setNotice(hash, undefined));
  }

  async end(session: string): Promise<void> {
    await this.#sessions.change((kept) => kept.delete(hashOf(session)));
  }

  /** Answers the one before. */
  #setNotice(hash: string, notice: Notice | undefined): Promise<Notice | undefined> {
    return this.#sessions.change((kept) => {
      const found = kept.get(hash);
      if (found) kept.set(hash, { endsMs: found.endsMs, who: found.who, ...(notice && { notice }) });
      return found?.notice;
    });
  }

  #add<T>(kept: Map<string, T>, value: T, max: number): string {
    const token = Buffer.from(this.#random(tokenBytes)).toString("base64url");
    kept.set(hashOf(token), value);
    const oldest = kept.keys().next().value;
    if (kept.size > max && oldest !== undefined) kept.delete(oldest);
    return token;
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
  /** Whose tokens are remembered apart: one may be shown at the gate of a private service and to the API behind it. */
  readonly whose: "admins" | "members";
  readonly shelves: Shelves;
  readonly refused: CredentialRefused;
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
  /** Until its time has run out anyway. */
  readonly #used: Shelf<Ending>;

  constructor(parts: Nip98Parts) {
    this.#parts = parts;
    this.#used = parts.shelves(`used by ${parts.whose}`, "wall");
  }

  async authorise(request: SignedRequest): Promise<Authorised> {
    const answer = await this.#judge(request);
    if (!answer.ok && request.authorization !== undefined) this.#parts.refused("signature", "unknown");
    return answer.ok || !this.#parts.isPrivate ? answer : no(this.#parts.strangersAreTold);
  }

  async #judge(request: SignedRequest): Promise<Authorised> {
    const { verifier, isKnown, strangersAreTold, isPrivate } = this.#parts;
    const event = signedEventIn(request.authorization);
    if (!event) return no("an Authorization header with a NIP-98 event is needed");
    if (!isPrivate && !isKnown(event.pubkey)) return no(strangersAreTold);
    const fault = this.#faultOf(event, request);
    if (fault !== undefined) return no(fault);
    if (!(await verifier.verify(event))) return no("the token's signature is not valid");
    if (!isKnown(event.pubkey)) return no(strangersAreTold);
    return (await this.#takeOnce(event)) ? { ok: true, pubkey: event.pubkey } : no("the token was used before");
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

  #takeOnce(event: NostrEvent): Promise<boolean> {
    const endsMs = (event.created_at + signedForSeconds + 2) * 1_000;
    return this.#used.change((kept) => {
      if (kept.has(event.id) || kept.size >= maxRemembered) return false;
      kept.set(event.id, { endsMs });
      return true;
    });
  }
}
