// One server of the modelled network: the real sync core over a model of its store and its relay. What it accepts follows
// from the repositories it carries; a state waits until its git data was fetched from a server that has it.

import type { EventId, NostrEvent } from "../../src/nostr/event.js";
import type { Filter } from "../../src/nostr/filter.js";
import { SubscriptionIndex } from "../../src/relay/live.js";
import type { SyncConfig } from "../../src/sync/core/config.js";
import { SyncCore } from "../../src/sync/core/core.js";
import type { Command, Input, Outcome, Time } from "../../src/sync/core/messages.js";
import { startWallMs } from "../events.js";
import { KeptRows } from "../kept-rows.js";
import type { Chance } from "../random.js";
import type { Timeline } from "../timeline.js";
import type { Library, Shelved } from "./library.js";
import { hostOf, type Repository } from "./repositories.js";
import type { End, Wire, Wires } from "./wires.js";

export interface Surroundings {
  readonly timeline: Timeline;
  readonly chance: Chance;
  readonly library: Library;
  readonly wires: Wires;
  readonly repositories: ReadonlyMap<string, Repository>;
  readonly config: (host: string) => SyncConfig;
  /** A server serves an event that it did not serve before. */
  readonly served: (server: NetworkServer, shelved: Shelved) => void;
}

interface Listener {
  readonly wire: Wire;
  readonly subscription: string;
}

const maxLimit = 5_000;

export class NetworkServer implements End {
  readonly host: string;
  #core: SyncCore;
  readonly #kept = new KeptRows();
  readonly #listeners = new Map<Wire, Map<string, Listener>>();
  #index = new SubscriptionIndex<Listener>();
  /** States that wait for their git data, by repository. */
  readonly #waiting = new Map<string, Shelved>();
  readonly #inbox: Input[] = [];
  #isStepping = false;
  #wakeMs = Number.POSITIVE_INFINITY;
  #armedMs = Number.POSITIVE_INFINITY;
  /** Which process this is: what an older one began means nothing to it. */
  #process = 0;
  isUp = false;
  steps = 0;

  constructor(
    readonly number: number,
    /** Coordinates of what it carries. */
    readonly carried: ReadonlySet<string>,
    private readonly around: Surroundings,
  ) {
    this.host = hostOf(number);
    this.#core = new SyncCore(around.config(this.host));
  }

  #now(): Time {
    const { nowMs } = this.around.timeline;
    return { wallMs: startWallMs + nowMs, monotonicMs: nowMs };
  }

  start(): void {
    const { library, repositories } = this.around;
    this.isUp = true;
    for (const input of this.#kept.loaded(this.#now())) this.#inbox.push(input);
    this.#inbox.push({ type: "tick" });
    for (const coordinate of this.carried) {
      const { announcement, roots } = repositories.get(coordinate)!;
      this.#inbox.push({ type: "accepted", event: announcement.event, hosted: true });
      for (const root of roots)
        if (library.isServed(this.number, root)) this.#inbox.push({ type: "accepted", event: root.event });
    }
    this.tell({ type: "replayEnded" });
  }

  /** In order: what is kept over a restart is kept. Its links end. */
  stop(): void {
    this.tell({ type: "stopping" });
    this.isUp = false;
    this.#process += 1;
    this.#inbox.length = 0;
    this.#wakeMs = Number.POSITIVE_INFINITY;
    this.#listeners.clear();
    this.#index = new SubscriptionIndex();
    this.#waiting.clear();
    this.#core = new SyncCore(this.around.config(this.host));
    this.around.wires.stopped(this);
  }

  tell(input: Input): void {
    if (!this.isUp) return;
    this.#inbox.push(input);
    if (this.#isStepping) return;
    this.#isStepping = true;
    for (let at = 0; at < this.#inbox.length; at++) {
      this.steps += 1;
      for (const command of this.#core.step(this.#inbox[at]!, this.#now(), this.around.chance.next)) this.#do(command);
    }
    this.#inbox.length = 0;
    this.#isStepping = false;
    this.#arm();
  }

  #arm(): void {
    if (this.#wakeMs >= this.#armedMs || this.#wakeMs === Number.POSITIVE_INFINITY) return;
    const atMs = this.#wakeMs;
    this.#armedMs = atMs;
    this.around.timeline.at(atMs, () => {
      if (this.#armedMs !== atMs) return;
      this.#armedMs = Number.POSITIVE_INFINITY;
      if (this.#wakeMs > atMs) this.#arm();
      else {
        this.#wakeMs = Number.POSITIVE_INFINITY;
        this.tell({ type: "tick" });
      }
    });
  }

  #do(command: Command): void {
    const { wires } = this.around;
    switch (command.type) {
      case "wakeAt":
        this.#wakeMs = command.monotonicMs;
        break;
      case "connect":
        wires.dial(this, command.relay, command.link);
        break;
      case "disconnect":
        wires.hangUp(this, command);
        break;
      case "subscribe":
        wires.subscribe(this, command);
        break;
      case "unsubscribe":
        wires.unsubscribe(this, command);
        break;
      case "reconcile":
        this.#inbox.push({ ...command, type: "reconcileProgress" });
        wires.reconcile(this, command);
        break;
      case "offerToIntake": {
        const process = this.#process;
        this.around.timeline.after(this.around.chance.between(1, 5), () => {
          if (process === this.#process) this.tell({ ...command, type: "verdict", outcome: this.take(command.event) });
        });
        break;
      }
      case "lookUpRelated":
        this.#inbox.push({
          type: "related",
          relay: command.relay,
          request: command.request,
          ...this.#related(command),
        });
        break;
      case "lookUpParticipants":
        this.#inbox.push({ type: "participants", coordinate: command.coordinate, participants: [], lists: [] });
        break;
      default:
        this.#kept.execute(command);
    }
  }

  #related({
    coordinates,
  }: {
    readonly coordinates: readonly string[];
  }): Pick<Extract<Input, { type: "related" }>, "ids" | "authors"> {
    const ids: EventId[] = [];
    const authors = new Set<NostrEvent["pubkey"]>();
    for (const coordinate of coordinates) {
      const repository = this.around.repositories.get(coordinate);
      if (!repository) continue;
      authors.add(repository.announcement.event.pubkey);
      for (const shelved of [...repository.roots, ...repository.replies]) {
        if (!this.around.library.isServed(this.number, shelved)) continue;
        authors.add(shelved.event.pubkey);
        if (shelved.event.kind === 1111) ids.push(shelved.event.id);
      }
    }
    return { ids, authors: [...authors] };
  }

  /** What intake says, and does. */
  take(event: NostrEvent): Outcome {
    const { library, repositories, chance, timeline } = this.around;
    const shelved = library.get(event.id)!;
    if (library.isServed(this.number, shelved)) return { type: "duplicate" };
    const coordinate = coordinateOf(event);
    if (!this.carried.has(coordinate))
      return {
        type: "refused",
        code: event.kind === 30_617 ? "service-not-listed" : event.kind === 30_618 ? "no-announcement" : "unrelated",
      };
    if (event.kind !== 30_618) {
      this.#serve(shelved);
      return { type: "stored" };
    }
    const newest = this.#waiting.get(coordinate) ?? repositories.get(coordinate)!.stateOf(this.number, library);
    if (newest === shelved) return { type: "waiting" };
    if (newest && newest.event.created_at >= event.created_at) return { type: "superseded" };
    this.#waiting.set(coordinate, shelved);
    const process = this.#process;
    // The hunt asks the servers that the announcement lists; somebody there has it, or the state would not be served.
    timeline.after(chance.between(500, 4_000), () => {
      if (process !== this.#process || this.#waiting.get(coordinate) !== shelved) return;
      this.#waiting.delete(coordinate);
      this.publish(shelved);
    });
    return { type: "held" };
  }

  /** Served from now on, and told to everybody who listens. */
  publish(shelved: Shelved): void {
    if (this.isUp && !this.around.library.isServed(this.number, shelved)) this.#serve(shelved);
  }

  #serve(shelved: Shelved): void {
    const { library, repositories, served, wires } = this.around;
    const { event } = shelved;
    const repository = repositories.get(coordinateOf(event))!;
    const replaced = event.kind === 30_618 ? repository.stateOf(this.number, library) : undefined;
    if (replaced) library.remove(this.number, replaced);
    library.serve(this.number, shelved);
    repository.file(shelved);
    served(this, shelved);
    for (const { wire, subscription } of this.#index.match(event)) wires.deliver(wire, subscription, shelved);
    this.tell({ type: "accepted", event });
  }

  // ---- the relay that others follow

  listen(wire: Wire, subscription: string, filters: readonly Filter[]): Shelved[] {
    this.unlisten(wire, subscription);
    const listener = { wire, subscription };
    const ofWire = this.#listeners.get(wire) ?? new Map<string, Listener>();
    this.#listeners.set(wire, ofWire.set(subscription, listener));
    this.#index.add(listener, filters);
    const found = new Set<Shelved>();
    for (const filter of filters) {
      if (filter.limit === 0) continue;
      for (const shelved of this.around.library.newest(
        filter,
        this.number,
        Math.min(filter.limit ?? maxLimit, maxLimit),
      ))
        found.add(shelved);
    }
    return [...found];
  }

  unlisten(wire: Wire, subscription: string): void {
    const listener = this.#listeners.get(wire)?.get(subscription);
    if (!listener) return;
    this.#index.remove(listener);
    this.#listeners.get(wire)!.delete(subscription);
  }

  hungUp(wire: Wire): void {
    for (const listener of this.#listeners.get(wire)?.values() ?? []) this.#index.remove(listener);
    this.#listeners.delete(wire);
  }

  /** What it has and the other lacks; what waits with the other is not lacking. */
  compare(filter: Filter, other: End, here: (equal: number, missing: EventId[], theirs: number) => void): void {
    const { library } = this.around;
    let equal = 0;
    let theirs = 0;
    const missing: EventId[] = [];
    library.each(filter, this.number, other.number, (shelved) => {
      const isHere = library.isServed(this.number, shelved);
      const isThere = library.isServed(other.number, shelved);
      if (isHere && isThere) equal += 1;
      else if (isThere) theirs += 1;
      else missing.push(shelved.event.id);
    });
    here(equal, missing, theirs);
  }

  isWaiting(id: EventId): boolean {
    if (this.#waiting.size === 0) return false;
    const shelved = this.around.library.get(id);
    return shelved !== undefined && this.#waiting.get(coordinateOf(shelved.event)) === shelved;
  }

  snapshot() {
    return this.#core.snapshot(this.#now());
  }
}

/** The repository an event of the model is about: the one its `a` or `A` names, or its own. */
export function coordinateOf(event: NostrEvent): string {
  for (const [name, value = ""] of event.tags) {
    if (name === "a" || name === "A") return value;
    if (name === "d") return `30617:${event.pubkey}:${value}`;
  }
  return "";
}
