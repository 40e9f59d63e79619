// Announcements in purgatory, as the core follows them (event-sync.md "Following our own relay" 3): read from the
// table at start, then from verdicts and expiries as they happen. A look now and then finds what ended another way.

import type { Verdict } from "../admission/verdict.js";
import { type WaitingEntry, waitingEntry, waitingEvent } from "../catalogue/waiting.js";
import { addressText } from "../nostr/address.js";
import type { EventId } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Store } from "../store/port.js";
import type { Input } from "./core/messages.js";

const addressOfEntry = (entry: WaitingEntry) => ({
  kind: kinds.announcement,
  pubkey: entry.pubkey,
  identifier: entry.identifier,
});

export class WaitingAnnouncements {
  readonly #byCoordinate = new Map<string, WaitingEntry>();
  readonly #coordinates = new Map<EventId, string>();

  constructor(
    private readonly store: Store,
    private readonly tell: (input: Input) => void,
  ) {}

  get count(): number {
    return this.#byCoordinate.size;
  }

  async open(): Promise<void> {
    for await (const [, entry] of this.store.rows<WaitingEntry>("purgatory", { prefix: "e:" })) this.#note(entry);
  }

  /** A verdict was written. */
  decided(verdict: Verdict): void {
    if (!verdict.ok) return;
    const ended: EventId[] = [];
    for (const change of verdict.changes ?? []) {
      if (change.type === "hold") this.#note(change.entry);
      else if (change.type === "unhold" && change.cause !== "replaced") ended.push(change.id);
    }
    for (const id of ended) this.#gone(this.#coordinates.get(id));
  }

  /** Finally, not merely soft: soft ones are still wanted. */
  expired(entry: WaitingEntry): void {
    if (entry.kind === "announcement") this.#gone(addressText(addressOfEntry(entry)));
  }

  /** The feed comes later than verdicts: what waits is still wanted when it tells of an earlier version's end. */
  fromFeed(input: Input): void {
    this.tell(input);
    const waiting = input.type === "removed" ? this.#byCoordinate.get(input.address ?? "") : undefined;
    if (waiting) this.#note(waiting);
  }

  /** Finds what was released, evicted or removed meanwhile. */
  async recheck(): Promise<void> {
    for (const [coordinate, entry] of [...this.#byCoordinate]) {
      if (await waitingEntry(this.store, entry.id)) continue;
      if (this.#byCoordinate.get(coordinate) !== entry) continue;
      // Released: the feed has said so.
      if (await this.store.latest(addressOfEntry(entry))) this.#drop(coordinate);
      else this.#gone(coordinate);
    }
  }

  #note(entry: WaitingEntry): void {
    if (entry.kind !== "announcement") return;
    const coordinate = addressText(addressOfEntry(entry));
    this.#drop(coordinate);
    this.#byCoordinate.set(coordinate, entry);
    this.#coordinates.set(entry.id, coordinate);
    this.tell({ type: "waiting", event: waitingEvent(entry) });
  }

  #gone(coordinate: string | undefined): void {
    if (coordinate !== undefined && this.#drop(coordinate)) this.tell({ type: "unwaiting", coordinate });
  }

  #drop(coordinate: string): boolean {
    const entry = this.#byCoordinate.get(coordinate);
    if (entry) this.#coordinates.delete(entry.id);
    return this.#byCoordinate.delete(coordinate);
  }
}
