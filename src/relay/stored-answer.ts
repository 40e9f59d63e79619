// How many stored events a REQ gets, and whether that was all of them (spec/relay.md "Limits"; NIP-67).
// Pure: filters in, filters to ask the store with, then one call a row.

import type { VerifiedEvent } from "../nostr/event.js";
import { type Filter, type Matcher, matcherOf, matchesNothing } from "../nostr/filter.js";
import type { RelayLimits } from "./limits.js";

/** Real clients ask by these without a limit and never page. */
const namesThings = (filter: Filter): boolean =>
  filter.ids !== undefined || ["e", "a", "d"].some((name) => filter.tags?.has(name) === true);

function limitOf(filter: Filter, limits: RelayLimits): number {
  const fallback = namesThings(filter) ? limits.maxLimit : limits.defaultLimit;
  return Math.min(filter.limit ?? fallback, limits.maxLimit);
}

interface Part {
  readonly limit: number;
  readonly matches: Matcher;
  taken: number;
}

export class StoredAnswer {
  /** What to ask the store: one row more than is sent tells whether there is more. */
  readonly filters: readonly Filter[];
  readonly #parts: readonly Part[];
  /** A search can only be judged by the store, so rows cannot be told apart by filter. */
  readonly #undivided: boolean;
  #rows = 0;
  #held = false;
  #unsure = false;

  constructor(filters: readonly Filter[], limits: RelayLimits) {
    const asked = filters.filter((filter) => !matchesNothing(filter));
    const one = asked.length === 1;
    this.#undivided = !one && asked.some((filter) => filter.search !== undefined);
    const extra = this.#undivided ? 0 : 1;
    const wanted = asked.filter((filter) => limitOf(filter, limits) > 0);
    // A client that asks for no stored events is told nothing about how many there are.
    this.#unsure = wanted.length < asked.length;
    this.filters = wanted.map((filter) => ({ ...filter, limit: limitOf(filter, limits) + extra }));
    this.#parts = wanted.map((filter) => ({
      limit: limitOf(filter, limits),
      matches: one ? () => true : matcherOf(filter, "often"),
      taken: 0,
    }));
  }

  /** Whether this row (rows come newest first) is within the limit of some filter. */
  take(row: { readonly event: VerifiedEvent }): boolean {
    this.#rows++;
    if (this.#undivided) return true;
    let wanted = false;
    let beyond = false;
    const single = this.#parts.length === 1 ? this.#parts[0] : undefined;
    for (const part of single ? [single] : this.#parts) {
      // With one filter every row is its own: the event is not parsed for it.
      if (!single && !part.matches(row.event)) continue;
      if (part.taken < part.limit) {
        part.taken++;
        wanted = true;
      } else beyond = true;
    }
    if (!wanted) this.#held = true;
    // Sent for another filter's sake; whether the full one has still more is not known.
    else if (beyond) this.#unsure = true;
    return wanted;
  }

  get hint(): "finish" | "more" | undefined {
    if (this.#held) return "more";
    if (this.#undivided) return this.#parts.every((part) => this.#rows < part.limit) ? "finish" : undefined;
    return this.#unsure ? undefined : "finish";
  }
}
