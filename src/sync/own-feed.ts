// Follows our own server from the beginning of history (event-sync.md "Following our own relay" 1, 2): stored
// announcements and roots, and what is removed, in the feed's order. One path for start, new repositories, restarts.

import { catalogueRow } from "../catalogue/repositories.js";
import { type NostrEvent, tagValue } from "../nostr/event.js";
import { kinds, rootKinds } from "../nostr/kinds.js";
import type { FeedEntry, Store } from "../store/port.js";
import type { Input } from "./core/messages.js";

const isFollowed = (kind: number): boolean => kind === kinds.announcement || rootKinds.includes(kind);

/** A stored announcement is hosted unless its newest version has dropped us (grasp.md "Hosted"). */
async function isHosted(store: Store, event: NostrEvent): Promise<boolean> {
  const row = await catalogueRow(store, { owner: event.pubkey, identifier: tagValue(event, "d") ?? "" });
  return row?.status !== "leaving";
}

/** Of history announcements and roots; of what comes later everything, because a refused event may refer to it. */
async function inputOf(store: Store, entry: FeedEntry, isReplaying: boolean): Promise<Input | undefined> {
  if (entry.type === "stored") {
    const { event } = entry;
    if (event.kind === kinds.announcement) {
      return { type: "accepted", event, hosted: await isHosted(store, event) };
    }
    return !isReplaying || rootKinds.includes(event.kind) ? { type: "accepted", event } : undefined;
  }
  const { id, kind, cause, address } = entry;
  // With a state's end an older one may be the newest.
  const isEndOfState = kind === kinds.state && !isReplaying;
  if (!isFollowed(kind) && !isEndOfState) return undefined;
  const isAddressed = address !== undefined && (kind === kinds.announcement || kind === kinds.state);
  return { type: "removed", id, cause, ...(isAddressed && { address }) };
}

export class OwnFeed {
  /** Everything up to this number was told. */
  #told = 0;
  #historyEnds: number | undefined;

  /** `replayed` is called once, when history has been told. */
  constructor(
    private readonly store: Store,
    private readonly tell: (input: Input) => void,
    private readonly replayed: () => void,
  ) {}

  /** Ends when the signal aborts or the store closes. Called again after it failed, it goes on where it was. */
  async follow(signal: AbortSignal): Promise<void> {
    const { store } = this;
    if (this.#historyEnds === undefined) {
      this.#historyEnds = store.position;
      if (this.#historyEnds === 0) this.replayed();
    }
    for await (const page of store.feed(this.#told, signal)) {
      if (signal.aborted) return;
      for (const entry of page) {
        const input = await inputOf(store, entry, entry.seq <= this.#historyEnds);
        if (signal.aborted) return;
        if (input) this.tell(input);
        const wasReplaying = this.#told < this.#historyEnds;
        this.#told = entry.seq;
        if (wasReplaying && this.#told >= this.#historyEnds) this.replayed();
      }
      // A long history must not keep everybody else waiting.
      await new Promise<void>((go) => setImmediate(go));
    }
  }
}
