// A model of our own server: a store under NIP-01's rules, a policy with the shape of the real one, purgatory, and a
// feed that reports what the core follows. Git data arrives through the `GitModel` seam: the model of git servers for
// hunting takes its place there.

import { type EventId, type NostrEvent, type Pubkey, rootKinds } from "../src/nostr/event.js";
import type { RefusalCode } from "../src/nostr/refusals.js";
import type { Input, Outcome, Participant } from "../src/sync/core/messages.js";
import { mostActive, namedIn } from "../src/sync/core/participants.js";
import { goodSignature, ownHost } from "./events.js";

/** Decides when the git data of a waiting announcement arrives: milliseconds from now, or never. */
export interface GitModel {
  arrivesAfterMs(announcement: NostrEvent): number | undefined;
}

/** Rules that refuse by number. */
export interface Caps {
  readonly waitingPerOwner: number;
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
  readonly caps?: Caps;
}

/** The code of a refusal by number. */
const overCap: RefusalCode = "too-many-waiting";

/** A cap, a clock, a newer version that may wait in vain. */
const passesByItself = (outcome: Outcome): boolean =>
  outcome.type === "superseded" ||
  (outcome.type === "refused" && (outcome.code === overCap || outcome.code === "from-the-future"));

const fullSyncWithinSeconds = 26 * 60 * 60;
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
  readonly #roots = new Map<string, Map<EventId, NostrEvent>>();
  readonly #waitingIds = new Set<EventId>();
  #authors = new Set<string>();
  /** Our disk is full, or the store is busy. */
  troubled = false;
  /** Changes with every change of what is here. */
  version = 0;
  /** Refused for a reason that passes by itself, and when that last was. */
  readonly #turnedAway = new Map<EventId, number>();

  constructor(readonly hooks: ServerHooks) {}

  /** What intake would say, without doing it. */
  judge(event: NostrEvent): Outcome {
    const refused = (code: RefusalCode): Outcome => ({ type: "refused", code });
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
    if (event.kind === 0 || event.kind === 10002) {
      const served = this.latest.get(`${event.kind}:${event.pubkey}:`);
      if (served && !isNewer(event, served)) return { type: "superseded" };
      return this.#authors.has(event.pubkey) ? { type: "stored" } : refused("unrelated");
    }
    let outcome = refused("unrelated");
    for (const [name, text = ""] of event.tags) {
      const isStored = /^[eEq]$/.test(name ?? "") && this.stored.has(text as EventId);
      if (isStored || (/^[aAq]$/.test(name ?? "") && this.hosted.has(text))) return { type: "stored" };
      const entry = /^[aAq]$/.test(name ?? "") ? this.waiting.get(text) : undefined;
      if (entry?.held.some((other) => other.id === event.id)) outcome = { type: "duplicate" };
      else if (entry && entry.held.length < 100) outcome = { type: "held" };
    }
    return outcome;
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
    if (listsUs(event)) {
      if (this.hooks.git.arrivesAfterMs(event) === 0) return { type: "stored" };
      return this.#hasRoomFor(event.pubkey) ? { type: "held" } : { type: "refused", code: overCap };
    }
    return this.#isMaintainer(event, false) ? { type: "stored" } : { type: "refused", code: "service-not-listed" };
  }

  #hasRoomFor(owner: string): boolean {
    const most = this.hooks.caps?.waitingPerOwner ?? Number.POSITIVE_INFINITY;
    let waiting = 0;
    for (const { event } of this.waiting.values()) if (event.pubkey === owner) waiting += 1;
    return waiting < most;
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
    else if (passesByItself(outcome)) this.#turnedAway.set(event.id, this.hooks.nowSeconds());
    return outcome;
  }

  /** Refused for a reason that passes by itself: it comes again with the next full sync, and not before. */
  isTurnedAway(id: EventId): boolean {
    const atSeconds = this.#turnedAway.get(id);
    return atSeconds !== undefined && this.hooks.nowSeconds() - atSeconds < fullSyncWithinSeconds;
  }

  #know(event: NostrEvent): void {
    const address = addressOf(event);
    const same = this.#byIdentifier.get(value(event, "d")) ?? new Set();
    this.#byIdentifier.set(value(event, "d"), same.add(address));
  }

  /** Waits for git data, itself or with its announcement. */
  isWaiting(id: EventId): boolean {
    return this.#waitingIds.has(id);
  }

  ban(author: string): void {
    this.banned.add(author);
    this.version += 1;
  }

  unban(author: string): void {
    this.banned.delete(author);
    this.version += 1;
    this.hooks.tell({ type: "listsChanged" });
  }

  #hold(event: NostrEvent): void {
    this.version += 1;
    this.#waitingIds.add(event.id);
    if (event.kind !== 30617) {
      for (const [, text = ""] of event.tags) {
        const entry = this.waiting.get(text);
        if (entry && !entry.held.includes(event)) entry.held.push(event);
      }
      return;
    }
    const address = addressOf(event);
    const before = this.waiting.get(address);
    if (before) this.#waitingIds.delete(before.event.id);
    const entry: Waiting = { event, held: before?.held ?? [] };
    this.waiting.set(address, entry);
    this.#know(event);
    this.hooks.tell({ type: "waiting", event });
    const arrivesMs = this.hooks.git.arrivesAfterMs(event);
    this.hooks.later(arrivesMs ?? softExpiryMs, () => {
      if (this.waiting.get(address) !== entry) return;
      this.waiting.delete(address);
      this.version += 1;
      for (const { id } of [event, ...entry.held]) this.#waitingIds.delete(id);
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
    this.version += 1;
    this.#turnedAway.delete(event.id);
    if (rootKinds.includes(event.kind)) {
      for (const coordinate of values(event, "a")) {
        const roots = this.#roots.get(coordinate) ?? new Map<EventId, NostrEvent>();
        this.#roots.set(coordinate, roots.set(event.id, event));
      }
    }
    this.timesStored.set(event.id, (this.timesStored.get(event.id) ?? 0) + 1);
    this.#authors.add(event.pubkey);
    if ((event.kind >= 30000 && event.kind < 40000) || event.kind === 0 || event.kind === 10002) {
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
      if (hosted) this.#releaseFor(address);
      this.hooks.tell({ type: "accepted", event, hosted });
    } else this.hooks.tell({ type: "accepted", event });
    if (event.kind === 5) for (const id of values(event, "e")) this.#deleteFor(event.pubkey, id as EventId);
  }

  /** What waits with another repository and is about this one too. */
  #releaseFor(address: string): void {
    for (const { held } of this.waiting.values()) {
      for (const event of held) {
        if (this.stored.has(event.id) || !event.tags.some((tag) => tag[1] === address)) continue;
        this.#waitingIds.delete(event.id);
        this.#store(event);
      }
    }
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
    this.version += 1;
    for (const coordinate of values(event, "a")) this.#roots.get(coordinate)?.delete(event.id);
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
    return [...(this.#roots.get(coordinate)?.values() ?? [])];
  }

  /** Who takes part in a repository: its maintainers, who wrote there, whom its roots name. */
  participantsOf(coordinate: string): Participant[] {
    const announced = this.latest.get(coordinate);
    if (!announced) return [];
    const found: Participant[] = [announced.pubkey, ...values(announced, "maintainers")].map((key) => ({
      pubkey: key as Pubkey,
      role: "maintainer",
      activeSeconds: 0,
    }));
    const known = new Set<string>([coordinate]);
    for (let grew = true; grew; ) {
      grew = false;
      for (const event of this.stored.values()) {
        const belongs = event.tags.some((tag) => /^[aAeEq]$/.test(tag[0] ?? "") && known.has(tag[1] ?? ""));
        if (known.has(event.id) || !belongs) continue;
        known.add(event.id);
        grew = true;
        found.push({ pubkey: event.pubkey, role: "author", activeSeconds: event.created_at });
        for (const named of rootKinds.includes(event.kind) ? namedIn(event, 20) : [])
          found.push({ pubkey: named, role: "named", activeSeconds: 0 });
      }
    }
    return mostActive(found, Number.POSITIVE_INFINITY);
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
