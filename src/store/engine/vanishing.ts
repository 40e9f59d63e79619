// Requests to vanish (NIP-62) whose author has more events than one commit should remove (threats row 39). The request's
// commit binds and hides all of them; they are removed in steps after it, each a commit of its own. A row in the table of
// deletions says that a request is not done: the next start goes on.

import type { NostrEvent } from "../../nostr/event.js";
import type { EventId, Pubkey } from "../../nostr/ids.js";
import type { Backend } from "./backend.js";

/** Removing one costs about fifty microseconds: a step does not hold others up. */
export const vanishedAtOnce = 200;

export interface Vanishing {
  readonly by: EventId;
  readonly until: number;
}

const prefix = "vanishing:";
export const vanishingKey = (pubkey: Pubkey): string => `${prefix}${pubkey}`;

export class VanishingAuthors {
  readonly authors = new Map<Pubkey, Vanishing>();

  constructor(backend: Backend) {
    const left = backend.tableRows("deletions", { prefix, limit: Number.MAX_SAFE_INTEGER - 1 });
    for (const [key, text] of left) this.#note(key, text);
  }

  /** What a commit has written into the table of deletions. */
  follow(rows: ReadonlyMap<string, string | undefined> | undefined): void {
    for (const [key, text] of rows ?? []) if (key.startsWith(prefix)) this.#note(key, text);
  }

  /** Nobody sees the row any more, though it is still there. */
  hides(event: Pick<NostrEvent, "id" | "pubkey" | "created_at">): boolean {
    const vanishing = this.authors.get(event.pubkey);
    return vanishing !== undefined && event.created_at <= vanishing.until && event.id !== vanishing.by;
  }

  #note(key: string, text: string | undefined): void {
    const pubkey = key.slice(prefix.length) as Pubkey;
    if (text === undefined) this.authors.delete(pubkey);
    else this.authors.set(pubkey, JSON.parse(text) as Vanishing);
  }
}
