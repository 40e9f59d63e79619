// One-time links into the admin page, and the sessions of browsers, opened by a link or by a signed request. In memory
// only: a restart ends all of them. Tokens are kept as hashes, so that a look into memory or a timing difference gives
// none away.

import { createHash, timingSafeEqual } from "node:crypto";
import type { Clock } from "../base/clock.js";
import type { RandomBytes } from "../nostr/keys.js";

export const linkLifeMs = 10 * 60_000;
export const sessionLifeMs = 12 * 60 * 60_000;
/** The oldest gives way. */
const maxLinks = 20;
const maxSessions = 100;

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

  /** A session for somebody who proved who he is. */
  open(who: string): string {
    const endsMs = this.#clock.monotonicMs() + sessionLifeMs;
    return this.#add(this.#sessions, { endsMs, who, notice: undefined }, maxSessions);
  }

  isSession(token: string): boolean {
    return this.#alive(token) !== undefined;
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
