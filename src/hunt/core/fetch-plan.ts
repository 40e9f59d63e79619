// What to ask one server for, in which order, within how many requests. A pure planner the fetching shell consults
// between requests. purgatory.md "Hunting", Fetch:
//  1. all needed ids that the server advertises, in one request;
//  2. at most 8 of the others, because many servers give only what they advertise;
//  3. "not our ref" and "unadvertised object" name one id at most: the asked set is halved until the bad one stands alone.

import type { Oid } from "../../nostr/ids.js";

export interface FetchPlanLimits {
  /** Requests this fetch may still make; look-ups and redirects already made are subtracted by the caller. */
  readonly requests: number;
  readonly unadvertised: number;
}

export type RequestOutcome =
  | "arrived"
  /** "not our ref" or "unadvertised object". */
  | "refused"
  /** Anything else: time-out, broken connection, bad pack. Ends the plan. */
  | "failed";

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
