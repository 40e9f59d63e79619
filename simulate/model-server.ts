// A model of our own server: a store under NIP-01's rules, a policy with the shape of the real one, purgatory, and a
// feed that reports what the core follows. Git data arrives through the `GitModel` seam: the model of git servers for
// hunting takes its place there.

import type { NostrEvent } from "../src/nostr/event.js";
import type { EventId } from "../src/nostr/ids.js";
import { rootKinds } from "../src/nostr/kinds.js";
import type { refuse } from "../src/nostr/refusals.js";
import type { Input, Outcome } from "../src/sync/core/messages.js";
import { goodSignature, ownHost } from "./events.js";

/** Decides when the git data of a waiting announcement arrives: milliseconds from now, or never. */
export interface GitModel {
  arrivesAfterMs(announcement: NostrEvent): number | undefined;
}

interface Waiting {
  readonly event: NostrEvent;
  /** Related events held with it. */
  readonly held: NostrEvent[];
}

export interface ServerHooks {
  tell(input: Input): void;
  later(delayMs: number, run: () => void): void;
  readonly nowSeconds: () => number;
  readonly git: GitModel;
}

const softExpiryMs = 24.5 * 60 * 60 * 1000;
const value = (event: NostrEvent, name: string): string => event.tags.find((tag) => tag[0] === name)?.[1] ?? "";
const values = (event: NostrEvent, name: string): string[] =>
  event.tags.flatMap((tag) => (tag[0] === name ? tag.slice(1) : []));
const addressOf = (event: NostrEvent): string => `${event.kind}:${event.pubkey}:${value(event, "d")}`;
export const listsUs = (event: NostrEvent): boolean => values(event, "relays").includes(`wss://${ownHost}`);

export class ModelServer {
  readonly stored = new Map<EventId, NostrEvent>();
  readonly latest = new Map<string, NostrEvent>();
  readonly waiting = new Map<string, Waiting>();
  readonly hosted = new Set<string>();
  readonly deleted = new Set<EventId>();
  readonly banned = new Set<string>();
  readonly timesStored = new Map<EventId, number>();
  readonly #byIdentifier = new Map<string, Set<string>>();
  #authors = new Set<string>();
  /** Our disk is full, or the store is busy. */
  troubled = false;
  storedAtMs = 0;

  constructor(readonly hooks: ServerHooks) {}

  /** What intake would say, without doing it. */
  judge(event: NostrEvent): Outcome {
    const refused = (code: Parameters<typeof refuse>[0]): Outcome => ({ type: "refused", code });
    if (event.created_at > this.hooks.nowSeconds() + 900) return refused("from-the-future");
    if (this.stored.has(event.id)) return { type: "duplicate" };
    if (event.sig !== goodSignature) return refused("bad-signature");
    if (this.deleted.has(event.id)) return refused("deleted");
    if (this.banned.has(event.pubkey)) return refused("author-blocked");
    if (event.kind === 30617) return this.#judgeAnnouncement(event);
    if (event.kind === 30618) return this.#judgeState(event);
    if (event.kind === 5 || event.kind === 62 || event.kind === 10317) {
      const related =
        this.#authors.has(event.pubkey) || values(event, "e").some((id) => this.stored.has(id as EventId));
      return related ? { type: "stored" } : refused("unrelated");
    }
    for (const [name, text = ""] of event.tags) {
      if (/^[aAq]$/.test(name ?? "")) {
        if (this.hosted.has(text)) return { type: "stored" };
        const entry = this.waiting.get(text);
        if (entry?.held.some((other) => other.id === event.id)) return { type: "duplicate" };
        if (entry && entry.held.length < 100) return { type: "held" };
      }
      if (/^[eEq]$/.test(name ?? "") && this.stored.has(text as EventId)) return { type: "stored" };
    }
    return refused("unrelated");
  }

  #judgeAnnouncement(event: NostrEvent): Outcome {
    const address = addressOf(event);
    const served = this.latest.get(address);
    if (served && !isNewer(event, served)) return { type: "superseded" };
    const waits = this.waiting.get(address);
    if (waits) {
      if (waits.event.id === event.id) return { type: "duplicate" };
      return isNewer(event, waits.event) ? { type: "held" } : { type: "superseded" };
    }
    if (served) return { type: "stored" };
    if (listsUs(event)) return this.hooks.git.arrivesAfterMs(event) === 0 ? { type: "stored" } : { type: "held" };
    return this.#isMaintainer(event, false) ? { type: "stored" } : { type: "refused", code: "service-not-listed" };
  }

  #judgeState(event: NostrEvent): Outcome {
    const served = this.latest.get(addressOf(event));
    if (served && !isNewer(event, served)) return { type: "superseded" };
    if (this.#isMaintainer(event, true)) return { type: "stored" };
    const known = (this.#byIdentifier.get(value(event, "d"))?.size ?? 0) > 0;
    return { type: "refused", code: known ? "not-a-maintainer" : "no-announcement" };
  }

  #isMaintainer(event: NostrEvent, waitingCounts: boolean): boolean {
    for (const address of this.#byIdentifier.get(value(event, "d")) ?? []) {
      const served = this.hosted.has(address) ? this.latest.get(address) : undefined;
      const found = served ?? (waitingCounts ? this.waiting.get(address)?.event : undefined);
      if (found && (found.pubkey === event.pubkey || values(found, "maintainers").includes(event.pubkey))) return true;
    }
    return false;
  }

  submit(event: NostrEvent): Outcome {
    if (this.troubled) return { type: "refused", code: "disk-full" };
    const outcome = this.judge(event);
    if (outcome.type === "stored") this.#store(event);
    else if (outcome.type === "held") this.#hold(event);
    return outcome;
  }

  #know(event: NostrEvent): void {
    const address = addressOf(event);
    const same = this.#byIdentifier.get(value(event, "d")) ?? new Set();
    this.#byIdentifier.set(value(event, "d"), same.add(address));
  }

  #hold(event: NostrEvent): void {
    if (event.kind !== 30617) {
      const entry = event.tags.map((tag) => this.waiting.get(tag[1] ?? "")).find((found) => found !== undefined);
      entry?.held.push(event);
      return;
    }
    const address = addressOf(event);
    const entry: Waiting = { event, held: this.waiting.get(address)?.held ?? [] };
    this.waiting.set(address, entry);
    this.#know(event);
    this.hooks.tell({ type: "waiting", event });
    const arrivesMs = this.hooks.git.arrivesAfterMs(event);
    this.hooks.later(arrivesMs ?? softExpiryMs, () => {
      if (this.waiting.get(address) !== entry) return;
      this.waiting.delete(address);
      if (arrivesMs === undefined) {
        this.#byIdentifier.get(value(event, "d"))?.delete(address);
        this.deleted.add(event.id);
        this.hooks.tell({ type: "unwaiting", coordinate: address });
        return;
      }
      this.#store(event);
      for (const held of entry.held) if (!this.stored.has(held.id)) this.#store(held);
    });
  }

  #store(event: NostrEvent): void {
    this.stored.set(event.id, event);
    this.storedAtMs = this.hooks.nowSeconds() * 1000;
    this.timesStored.set(event.id, (this.timesStored.get(event.id) ?? 0) + 1);
    this.#authors.add(event.pubkey);
    if (event.kind >= 30000 && event.kind < 40000) {
      const address = addressOf(event);
      const old = this.latest.get(address);
      this.latest.set(address, event);
      if (old) {
        this.stored.delete(old.id);
        if (event.kind === 30617) this.hooks.tell({ type: "removed", id: old.id, address, cause: "replaced" });
      }
    }
    if (event.kind === 30617) {
      const address = addressOf(event);
      this.#know(event);
      const hosted = listsUs(event) || this.#isMaintainerOfOther(event);
      if (hosted) this.hosted.add(address);
      else this.hosted.delete(address);
      this.hooks.tell({ type: "accepted", event, hosted });
    } else if (rootKinds.includes(event.kind)) this.hooks.tell({ type: "accepted", event });
    if (event.kind === 5) for (const id of values(event, "e")) this.#deleteFor(event.pubkey, id as EventId);
  }

  #isMaintainerOfOther(event: NostrEvent): boolean {
    for (const address of this.#byIdentifier.get(value(event, "d")) ?? []) {
      const other = this.latest.get(address);
      if (
        other &&
        other.pubkey !== event.pubkey &&
        listsUs(other) &&
        values(other, "maintainers").includes(event.pubkey)
      ) {
        return true;
      }
    }
    return false;
  }

  #deleteFor(author: string, id: EventId): void {
    const event = this.stored.get(id);
    if (event?.pubkey !== author) return;
    this.remove(event, "deletion");
    this.deleted.add(id);
  }

  remove(event: NostrEvent, cause: string): void {
    this.stored.delete(event.id);
    const address = event.kind >= 30000 ? addressOf(event) : undefined;
    if (address !== undefined && this.latest.get(address)?.id === event.id) {
      this.latest.delete(address);
      if (this.hosted.delete(address)) this.#byIdentifier.get(value(event, "d"))?.delete(address);
    }
    this.hooks.tell({
      type: "removed",
      id: event.id,
      cause,
      ...(event.kind === 30617 && address !== undefined && { address }),
    });
  }

  /** The engine starts: history first, then live. */
  replay(): void {
    for (const event of this.stored.values()) {
      if (event.kind === 30617) this.hooks.tell({ type: "accepted", event, hosted: this.hosted.has(addressOf(event)) });
      else if (rootKinds.includes(event.kind)) this.hooks.tell({ type: "accepted", event });
    }
    for (const { event } of this.waiting.values()) this.hooks.tell({ type: "waiting", event });
    this.hooks.tell({ type: "replayEnded" });
  }

  rootsOf(coordinate: string): NostrEvent[] {
    return [...this.stored.values()].filter(
      (event) => rootKinds.includes(event.kind) && event.tags.some((tag) => tag[0] === "a" && tag[1] === coordinate),
    );
  }

  /** Stored events of these repositories that are no roots, and everybody who wrote there. */
  relatedTo(coordinates: readonly string[]): { ids: EventId[]; authors: NostrEvent["pubkey"][] } {
    const known = new Set<string>(coordinates);
    const ids: EventId[] = [];
    const authors = new Set<NostrEvent["pubkey"]>();
    for (let grew = true; grew; ) {
      grew = false;
      for (const event of this.stored.values()) {
        if (known.has(event.id)) continue;
        const belongs = event.tags.some((tag) => /^[aAeEq]$/.test(tag[0] ?? "") && known.has(tag[1] ?? ""));
        if (!belongs && !(event.kind === 30617 && known.has(addressOf(event)))) continue;
        known.add(event.id);
        authors.add(event.pubkey);
        if (event.kind < 30000 && !rootKinds.includes(event.kind)) ids.push(event.id);
        grew = true;
      }
    }
    return { ids, authors: [...authors] };
  }
}

const isNewer = (a: NostrEvent, b: NostrEvent): boolean =>
  a.created_at > b.created_at || (a.created_at === b.created_at && a.id < b.id);
