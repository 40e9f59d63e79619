// A store so simple that it is obviously right, to compare the real ones with: a list of events, walked for every
// question. Only for tests: it is slow on purpose.

import {
  addressOf,
  addressText,
  compareNewestFirst,
  expirationOf,
  isAddressable,
  isEventId,
  isReplaceable,
  parseAddress,
  type VerifiedEvent,
} from "../../nostr/event.js";
import { type Filter, matcherOf, searchableWords } from "../../nostr/filter.js";

interface Kept {
  readonly seq: number;
  readonly event: VerifiedEvent;
}

export class Oracle {
  kept: Kept[] = [];
  readonly #requests: VerifiedEvent[] = [];
  position = 0;

  constructor(public nowSeconds: number) {}

  copy(): Oracle {
    const other = new Oracle(this.nowSeconds);
    other.kept = [...this.kept];
    other.#requests.push(...this.#requests);
    other.position = this.position;
    return other;
  }

  put(event: VerifiedEvent): string {
    const expiration = expirationOf(event);
    if (expiration !== undefined && expiration <= this.nowSeconds) return "expired";
    if (this.kept.some((other) => other.event.id === event.id)) return "duplicate";
    if (this.isDeleted(event)) return "deleted";
    const current = this.kept.find((other) => addressTextOf(other.event) === addressTextOf(event) && addressOf(event));
    if (current && compareNewestFirst(current.event, event) < 0) return "older";
    if (current) this.remove(current.event.id);
    if (event.kind === 5 || event.kind === 62) {
      this.#requests.push(event);
      for (const { event: other } of [...this.kept]) if (covers(event, other)) this.remove(other.id);
    }
    this.kept.push({ seq: ++this.position, event });
    return "stored";
  }

  isDeleted(event: VerifiedEvent): boolean {
    return this.#requests.some((request) => request.id !== event.id && covers(request, event));
  }

  remove(id: string): boolean {
    const before = this.kept.length;
    this.kept = this.kept.filter(({ event }) => event.id !== id);
    if (this.kept.length === before) return false;
    this.position++;
    return true;
  }

  sweep(nowSeconds: number): number {
    const expired = this.kept.filter(({ event }) => (expirationOf(event) ?? Number.POSITIVE_INFINITY) <= nowSeconds);
    for (const { event } of expired) this.remove(event.id);
    return expired.length;
  }

  query(
    filters: readonly Filter[],
    upTo = Number.POSITIVE_INFINITY,
    limit = Number.POSITIVE_INFINITY,
  ): VerifiedEvent[] {
    const found = new Set<VerifiedEvent>();
    const seen = this.kept.filter(
      ({ seq, event }) => seq <= upTo && (expirationOf(event) ?? Number.POSITIVE_INFINITY) > this.nowSeconds,
    );
    for (const filter of filters) {
      const matches = matcherOf(filter);
      const matching = seen
        .map(({ event }) => event)
        .filter((event) => matches(event) && isFound(event, filter.search));
      for (const event of matching.sort(compareNewestFirst).slice(0, filter.limit)) found.add(event);
    }
    return [...found].sort(compareNewestFirst).slice(0, limit);
  }
}

const addressTextOf = (event: VerifiedEvent): string | undefined => {
  const address = addressOf(event);
  return address && addressText(address);
};

function covers(request: VerifiedEvent, event: VerifiedEvent): boolean {
  if (request.pubkey !== event.pubkey) return false;
  if (request.kind === 62) return event.created_at <= request.created_at;
  if (event.kind === 5 || event.kind === 62) return false;
  return request.tags.some(([name, value]) => {
    if (name === "e") return isEventId(value) && value === event.id;
    const address = name === "a" && value !== undefined ? parseAddress(value) : undefined;
    if (address?.pubkey !== request.pubkey || event.created_at > request.created_at) return false;
    if (address.kind !== event.kind) return false;
    if (isReplaceable(event.kind)) return true;
    return isAddressable(event.kind) && addressTextOf(event) === value;
  });
}

function isFound(event: VerifiedEvent, search: string | undefined): boolean {
  if (search === undefined) return true;
  const asked = search.split(" ").filter((part) => part !== "" && !part.includes(":"));
  const wanted = [...new Set(asked.map((word) => word.toLowerCase()))];
  const words = searchableWords(event);
  return (
    wanted.length > 0 &&
    wanted.every((word, index) =>
      words.some(
        (other) => other === word || (index === wanted.length - 1 && word.length >= 4 && other.startsWith(word)),
      ),
    )
  );
}
