// Where people write (NIP-65, kind 10002): what is known of each participant's list, for how long it is good, and whom it
// is being asked of. Lists of strangers: of each only the first few relays that the author writes to count, however many
// it names. Only lists whose signature was checked come here. In memory; a list whose author is admitted is stored as
// any event is.

import { compareNewestFirst, type EventId, type NostrEvent, type Pubkey } from "../../nostr/event.js";
import type { SyncConfig } from "./config.js";
import { type ListedRelay, listedRelay } from "./wanted.js";

/** Tags that are looked at: a list of ten thousand relays costs no more than one of a hundred. */
const maxTagsRead = 100;

/** The relays the author writes to, in order, each once, without ourselves. */
export function writeRelaysOf(
  event: Pick<NostrEvent, "tags">,
  ownServices: readonly string[],
  max: number,
): ListedRelay[] {
  const found = new Map<string, ListedRelay>();
  for (const [name, url = "", marker = "write"] of event.tags.slice(0, maxTagsRead)) {
    if (name !== "r" || marker !== "write") continue;
    const relay = listedRelay(url);
    if (!relay || ownServices.includes(relay.key)) continue;
    const known = found.get(relay.key);
    if (known ? relay.url.startsWith("wss:") : found.size < max) found.set(relay.key, relay);
  }
  return [...found.values()];
}

interface KnownList {
  /** Undefined: none was found. */
  readonly list: { readonly id: EventId; readonly created_at: number } | undefined;
  readonly relays: readonly ListedRelay[];
  readonly untilMs: number;
}

interface LookUp {
  /** Relays, by number, that have not answered yet. */
  readonly places: Set<number>;
  readonly isAtFallbacks: boolean;
  readonly beganMs: number;
  answers: number;
}

export class RelayLists {
  readonly #known = new Map<Pubkey, KnownList>();
  readonly #lookUps = new Map<Pubkey, LookUp>();

  constructor(readonly config: SyncConfig) {}

  get counts(): { readonly found: number; readonly none: number; readonly asked: number } {
    let found = 0;
    for (const { list } of this.#known.values()) if (list) found += 1;
    return { found, none: this.#known.size - found, asked: this.#lookUps.size };
  }

  /** Look-ups under way. */
  get asked(): number {
    return this.#lookUps.size;
  }

  /** Undefined: nothing is known of this author yet. */
  relaysOf(author: Pubkey): { readonly relays: readonly ListedRelay[]; readonly isFound: boolean } | undefined {
    const known = this.#known.get(author);
    return known && { relays: known.relays, isFound: known.list !== undefined };
  }

  /** A list whose signature is right. True: its author writes elsewhere than was known. */
  learn(event: Pick<NostrEvent, "id" | "pubkey" | "created_at" | "tags">, untilMs: number): boolean {
    const { id, pubkey, created_at } = event;
    const known = this.#known.get(pubkey);
    const order = known?.list ? compareNewestFirst({ id, created_at }, known.list) : -1;
    if (order > 0) return false;
    const { ownServices, maxWriteRelays } = this.config;
    const relays = order === 0 ? known!.relays : writeRelaysOf(event, ownServices, maxWriteRelays);
    this.#known.set(pubkey, {
      list: { id, created_at },
      relays,
      untilMs: Math.max(untilMs, order === 0 ? known!.untilMs : Number.NEGATIVE_INFINITY),
    });
    const keys = (list: readonly ListedRelay[]): string => JSON.stringify(list.map(({ url }) => url));
    return !known?.list || keys(relays) !== keys(known.relays);
  }

  /** Nothing is known, or what is known is old, and nobody has been asked. */
  isDue(author: Pubkey, nowMs: number): boolean {
    return !this.#lookUps.has(author) && (this.#known.get(author)?.untilMs ?? Number.NEGATIVE_INFINITY) <= nowMs;
  }

  begin(author: Pubkey, places: Iterable<number>, isAtFallbacks: boolean, beganMs: number): void {
    this.#lookUps.set(author, { places: new Set(places), isAtFallbacks, beganMs, answers: 0 });
  }

  /** A relay has answered, or will not. True: nobody is waited for any more. */
  heard(author: Pubkey, place: number, hasAnswered: boolean): boolean {
    const lookUp = this.#lookUps.get(author);
    if (!lookUp?.places.delete(place)) return false;
    if (hasAnswered) lookUp.answers += 1;
    return lookUp.places.size === 0;
  }

  /** Ends a look-up. `none`: nobody knows a list; `elsewhere`: those who are asked last may. */
  end(author: Pubkey, nowMs: number): "found" | "none" | "elsewhere" {
    const lookUp = this.#lookUps.get(author);
    this.#lookUps.delete(author);
    const known = this.#known.get(author);
    const { listFoundMs, listNoneMs, listUnansweredMs, fallbackRelays } = this.config;
    const isAnswered = (lookUp?.answers ?? 0) > 0;
    if (known?.list) {
      // An old list that nobody has brought again is still the newest there is.
      const untilMs = Math.max(known.untilMs, nowMs + (isAnswered ? listFoundMs : listUnansweredMs));
      this.#known.set(author, { ...known, untilMs });
      return "found";
    }
    if (lookUp && !lookUp.isAtFallbacks && fallbackRelays.length > 0) return "elsewhere";
    const waitMs = isAnswered ? listNoneMs : listUnansweredMs;
    this.#known.set(author, { list: undefined, relays: [], untilMs: nowMs + waitMs });
    return "none";
  }

  /** Look-ups that have waited for long enough. */
  *overdue(nowMs: number): Iterable<Pubkey> {
    for (const [author, { beganMs }] of this.#lookUps) {
      if (nowMs - beganMs >= this.config.listTimeoutMs) yield author;
    }
  }

  /** What is known of people who take part in nothing any more. */
  forget(isWanted: (author: Pubkey) => boolean): void {
    for (const author of this.#known.keys()) if (!isWanted(author)) this.#known.delete(author);
    for (const author of this.#lookUps.keys()) if (!isWanted(author)) this.#lookUps.delete(author);
  }
}
