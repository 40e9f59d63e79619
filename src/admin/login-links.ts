// One-time links into the admin page, and the sessions they open. In memory only: a restart ends all of them. Tokens
// are kept as hashes, so that a look into memory or a timing difference gives none away.

import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.js";
import type { RandomBytes } from "../nostr/keys.js";

export const linkLifeMs = 10 * 60_000;
export const sessionLifeMs = 12 * 60 * 60_000;
/** The oldest gives way. */
const maxLinks = 20;
const maxSessions = 100;

const tokenBytes = 32;
const hashOf = (token: string): string => createHash("sha256").update(token).digest("hex");

export class LoginLinks {
  readonly #clock: Clock;
  readonly #random: RandomBytes;
  /** Hash → monotonic time of its end. */
  readonly #links = new Map<string, number>();
  readonly #sessions = new Map<string, number>();

  constructor(clock: Clock, random: RandomBytes) {
    this.#clock = clock;
    this.#random = random;
  }

  /** A token that opens one session within ten minutes. */
  issue(): string {
    return this.#add(this.#links, linkLifeMs, maxLinks);
  }

  /** The session's token; undefined for a token that is unknown, used or too old. */
  redeem(token: string): string | undefined {
    const hash = hashOf(token);
    if (!this.#isAlive(this.#links, hash)) return undefined;
    this.#links.delete(hash);
    return this.#add(this.#sessions, sessionLifeMs, maxSessions);
  }

  isSession(token: string): boolean {
    return this.#isAlive(this.#sessions, hashOf(token));
  }

  end(session: string): void {
    this.#sessions.delete(hashOf(session));
  }

  #add(tokens: Map<string, number>, lifeMs: number, max: number): string {
    const token = Buffer.from(this.#random(tokenBytes)).toString("base64url");
    tokens.set(hashOf(token), this.#clock.monotonicMs() + lifeMs);
    const oldest = tokens.keys().next().value;
    if (tokens.size > max && oldest !== undefined) tokens.delete(oldest);
    return token;
  }

  #isAlive(tokens: Map<string, number>, hash: string): boolean {
    const endsMs = tokens.get(hash);
    if (endsMs === undefined) return false;
    if (endsMs > this.#clock.monotonicMs()) return true;
    tokens.delete(hash);
    return false;
  }
}
