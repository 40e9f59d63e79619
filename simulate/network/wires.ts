// The wires between the servers of the modelled network: they take time, carry bytes that are counted, and may be cut by
// a partition. A message is a plan on the timeline; those of one wire keep their order.

import type { RelayLimits } from "../../src/net/relay-dialer.js";
import type { EventId } from "../../src/nostr/event.js";
import type { Filter } from "../../src/nostr/filter.js";
import type { Command, Input } from "../../src/sync/core/messages.js";
import type { Chance } from "../random.js";
import type { Timeline } from "../timeline.js";
import type { Shelved } from "./library.js";
import { connectBytes, eoseFrameBytes, eventFrameBytes, filterBytes, reconciliation } from "./wire-costs.js";

/** A server, as its wires know it: a follower on one end, a relay on the other. */
export interface End {
  readonly number: number;
  readonly host: string;
  readonly isUp: boolean;
  tell(input: Input): void;
  isWaiting(id: EventId): boolean;
  listen(wire: Wire, subscription: string, filters: readonly Filter[]): Shelved[];
  unlisten(wire: Wire, subscription: string): void;
  hungUp(wire: Wire): void;
  compare(filter: Filter, other: End, here: (equal: number, missing: EventId[], theirs: number) => void): void;
}

/** A socket: `from` follows the relay of `to`. */
export interface Wire {
  readonly id: number;
  readonly link: number;
  readonly from: End;
  readonly to: End;
  readonly latencyMs: number;
  isOpen: boolean;
}

/** What one server has caused and met; bytes count on both ends. */
export interface Load {
  dials: number;
  requestsSent: number;
  requestsServed: number;
  bytesSent: number;
  bytesReceived: number;
  eventBytesReceived: number;
}

export const noLoad = (): Load => ({
  dials: 0,
  requestsSent: 0,
  requestsServed: 0,
  bytesSent: 0,
  bytesReceived: 0,
  eventBytesReceived: 0,
});

/** What our own relay's NIP-11 says. */
export const limits: RelayLimits = {
  maxFilterValues: 5_000,
  maxMessageBytes: 5 * 2 ** 20,
  maxFilters: 100,
  maxSubscriptions: 300,
  maxLimit: 5_000,
};

type OfLink = { readonly relay: string; readonly link: number };
type Subscribe = Extract<Command, { type: "subscribe" }>;
type Reconcile = Extract<Command, { type: "reconcile" }>;

export class Wires {
  #servers: ReadonlyMap<string, End> = new Map();
  /** By follower and relay. */
  readonly #wires = new Map<End, Map<string, Wire>>();
  readonly #loads: Load[] = [];
  /** Servers on the other side of the cut. */
  #cutOff: ReadonlySet<End> = new Set();
  #nextId = 1;

  constructor(
    private readonly timeline: Timeline,
    private readonly chance: Chance,
  ) {}

  connectAll(servers: readonly End[]): void {
    this.#servers = new Map(servers.map((server) => [server.host, server]));
    for (const server of servers) this.#loads[server.number] = noLoad();
  }

  loadOf(server: End): Load {
    return this.#loads[server.number]!;
  }

  forgetLoads(): void {
    for (const load of this.#loads) Object.assign(load, noLoad());
  }

  /** Nobody inside talks to anybody outside until it is called again. */
  partition(inside: ReadonlySet<End>): void {
    this.#cutOff = inside;
    for (const wires of this.#wires.values())
      for (const wire of [...wires.values()]) if (!this.#isPassable(wire.from, wire.to)) this.#cut(wire);
  }

  #isPassable(from: End, to: End): boolean {
    return this.#cutOff.has(from) === this.#cutOff.has(to);
  }

  #carry(from: End, to: End, bytes: number): void {
    this.loadOf(from).bytesSent += bytes;
    this.loadOf(to).bytesReceived += bytes;
  }

  dial(from: End, relay: string, link: number): void {
    const to = this.#servers.get(relay);
    this.loadOf(from).dials += 1;
    const latencyMs = this.chance.between(10, 120);
    const of = { relay, link };
    const isCut = to !== undefined && !this.#isPassable(from, to);
    this.timeline.after(isCut ? 10_000 : latencyMs * 4, () => {
      if (!from.isUp) return;
      if (!to?.isUp || !this.#isPassable(from, to)) {
        from.tell({ type: "connectFailed", kind: isCut ? "timeout" : "refused", ...of });
        return;
      }
      const wire: Wire = { id: this.#nextId++, link, from, to, latencyMs, isOpen: true };
      const own = this.#wires.get(from) ?? new Map<string, Wire>();
      this.#wires.set(from, own.set(relay, wire));
      this.#carry(from, to, connectBytes / 2);
      this.#carry(to, from, connectBytes / 2);
      from.tell({ type: "connected", limits, ...of });
    });
  }

  #wire(from: End, { relay, link }: OfLink): Wire | undefined {
    const wire = this.#wires.get(from)?.get(relay);
    return wire?.link === link && wire.isOpen ? wire : undefined;
  }

  hangUp(from: End, of: OfLink): void {
    const wire = this.#wire(from, of);
    if (wire) this.#end(wire);
  }

  #end(wire: Wire): void {
    wire.isOpen = false;
    wire.to.hungUp(wire);
    this.#wires.get(wire.from)?.delete(wire.to.host);
  }

  /** It ends by itself: the follower hears of it. */
  #cut(wire: Wire): void {
    if (!wire.isOpen) return;
    this.#end(wire);
    const { from, to, link } = wire;
    this.timeline.after(this.chance.between(10, 60_000), () => from.tell({ type: "closed", relay: to.host, link }));
  }

  stopped(server: End): void {
    for (const wire of [...(this.#wires.get(server)?.values() ?? [])]) this.#end(wire);
    for (const [from, wires] of this.#wires) {
      const wire = wires.get(server.host);
      if (!wire) continue;
      this.#end(wire);
      this.timeline.after(wire.latencyMs, () => from.tell({ type: "closed", relay: server.host, link: wire.link }));
    }
  }

  #answer(wire: Wire, bytes: number, inputs: readonly Input[], afterMs = wire.latencyMs): void {
    this.#carry(wire.to, wire.from, bytes);
    this.timeline.after(afterMs, () => {
      for (const input of inputs) if (wire.isOpen) wire.from.tell(input);
    });
  }

  subscribe(from: End, command: Subscribe): void {
    const wire = this.#wire(from, command);
    if (!wire) return;
    this.#asked(wire, 30 + command.filters.reduce((sum, filter) => sum + filterBytes(filter), 0));
    this.timeline.after(wire.latencyMs, () => {
      if (!wire.isOpen) return;
      const { relay, link, subscription } = command;
      const found = wire.to.listen(wire, subscription, command.filters);
      const inputs: Input[] = found.map(({ event }) => ({ type: "event", relay, link, subscription, event }));
      inputs.push({ type: "eose", relay, link, subscription });
      const bytes = found.reduce((sum, shelved) => sum + shelved.bytes + eventFrameBytes, 0);
      this.loadOf(wire.from).eventBytesReceived += bytes;
      this.#answer(wire, bytes + eoseFrameBytes, inputs);
    });
  }

  #asked(wire: Wire, bytes: number): void {
    this.loadOf(wire.from).requestsSent += 1;
    this.loadOf(wire.to).requestsServed += 1;
    this.#carry(wire.from, wire.to, bytes);
  }

  unsubscribe(from: End, command: OfLink & { readonly subscription: string }): void {
    const wire = this.#wire(from, command);
    if (!wire) return;
    this.#carry(from, wire.to, 20);
    this.timeline.after(wire.latencyMs, () => wire.to.unlisten(wire, command.subscription));
  }

  reconcile(from: End, command: Reconcile): void {
    const wire = this.#wire(from, command);
    if (!wire) return;
    const { relay, link, session, filter, maxMissing } = command;
    this.#asked(wire, 30 + filterBytes(filter));
    this.timeline.after(wire.latencyMs, () => {
      if (!wire.isOpen) return;
      wire.to.compare(filter, from, (equal, lacking, theyLack) => {
        const { bytes, rounds } = reconciliation(equal, lacking.length + theyLack);
        this.#carry(from, wire.to, bytes / 3);
        const missing: EventId[] = [];
        const waiting: EventId[] = [];
        for (const id of lacking) (from.isWaiting(id) ? waiting : missing).push(id);
        const input: Input =
          missing.length > maxMissing
            ? { type: "reconcileFailed", relay, link, session, kind: "too-many" }
            : { type: "reconciled", relay, link, session, missing, waiting, peerMissing: theyLack };
        this.#answer(wire, (bytes * 2) / 3, [input], wire.latencyMs * (2 * rounds - 1));
      });
    });
  }

  deliver(wire: Wire, subscription: string, { event, bytes }: Shelved): void {
    if (!wire.isOpen) return;
    this.loadOf(wire.from).eventBytesReceived += bytes + eventFrameBytes;
    const { to, link } = wire;
    this.#answer(wire, bytes + eventFrameBytes, [{ type: "event", relay: to.host, link, subscription, event }]);
  }
}
