// What addresses may do to the relay: how much all of them may make it hold, and connections and rates by address
// (spec/relay.md "Limits"; threats row 25). One entry an address: it lives while the address is connected, and after that
// until its rates have grown back, so that reconnecting wins nothing.

import { ByteBudget } from "../base/budget/bytes.js";
import { ipGroup, perMinute, perSecond, TokenBucket } from "../base/budget/rates.js";
import { type Clock, LoopTurns } from "../base/clock.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { RelayLimits } from "./limits.js";

/** What all connections together may make us hold (threats.md rows 36, 38 and 48). */
export interface RelayBudgets {
  readonly outgoing: ByteBudget;
  readonly incoming: ByteBudget;
  readonly filters: ByteBudget;
}

export const relayBudgets = (relay: { readonly limits: RelayLimits }): RelayBudgets => ({
  outgoing: new ByteBudget(() => relay.limits.outgoing),
  incoming: new ByteBudget(() => relay.limits.incoming),
  filters: new ByteBudget(() => relay.limits.filters),
});

interface Visitor {
  connections: number;
  readonly events: TokenBucket;
  readonly badFrames: TokenBucket;
  readonly bytes: TokenBucket;
  readonly turns: LoopTurns;
}

/** One connection of an address. There are thousands: what it does is counted with the address. */
export class Visit {
  readonly #visitors: Visitors;
  readonly #visitor: Visitor;
  #isOver = false;

  constructor(visitors: Visitors, visitor: Visitor) {
    this.#visitors = visitors;
    this.#visitor = visitor;
  }

  /** Of the event loop: what the address sends, and stored answers to it, must not hold up everybody. */
  get turns(): LoopTurns {
    return this.#visitor.turns;
  }

  /** Whether the address may send another event now. */
  get maySendEvents(): boolean {
    const { clock, relay } = this.#visitors;
    return this.#visitor.events.waitMs(perMinute(relay.limits.eventsPerMinutePerIp), clock.monotonicMs()) === 0;
  }

  /** Takes an event from the address's rate, as many times as it is work. */
  takeEvent(cost: number): boolean {
    const { clock, relay } = this.#visitors;
    return this.#visitor.events.take(perMinute(relay.limits.eventsPerMinutePerIp), clock.monotonicMs(), cost);
  }

  /** Takes from how much the address may send that is not understood. */
  takeBadFrame(cost: number): boolean {
    const { clock, relay } = this.#visitors;
    return this.#visitor.badFrames.take(perMinute(relay.limits.badFramesPerMinutePerIp), clock.monotonicMs(), cost);
  }

  /** Counts what came from the address. Answers for how long nothing more is read from it; 0: go on. */
  arrived(bytes: number): number {
    const { clock, relay } = this.#visitors;
    return this.#visitor.bytes.spend(perSecond(relay.limits.receivePerSecondPerIpBytes), clock.monotonicMs(), bytes);
  }

  end(): void {
    if (!this.#isOver) this.#visitors.leave(this.#visitor);
    this.#isOver = true;
  }
}

/** Entries of people who left are forgotten early when there are this many. */
const maxVisitors = 100_000;

export class Visitors {
  readonly #byGroup = new Map<string, Visitor>();
  #connections = 0;

  constructor(
    readonly clock: Clock,
    readonly relay: { readonly limits: RelayLimits },
  ) {}

  get connections(): number {
    return this.#connections;
  }

  /** Addresses that are connected now. */
  get uniqueIps(): number {
    return this.countWith(1);
  }

  /** Addresses with at least so many connections now. */
  countWith(connections: number): number {
    let count = 0;
    for (const visitor of this.#byGroup.values()) if (visitor.connections >= connections) count++;
    return count;
  }

  mayEnter(ip: string): { readonly ok: true } | Refusal {
    const { maxConnections, maxConnectionsPerIp } = this.relay.limits;
    if (this.#connections >= maxConnections)
      return refuse("too-many", "the server has all the connections it can hold");
    if ((this.#byGroup.get(ipGroup(ip))?.connections ?? 0) >= maxConnectionsPerIp) {
      return refuse("rate-limited", `at most ${maxConnectionsPerIp} connections are allowed from one address`);
    }
    return { ok: true };
  }

  enter(ip: string): Visit {
    const group = ipGroup(ip);
    let visitor = this.#byGroup.get(group);
    if (!visitor) {
      if (this.#byGroup.size >= maxVisitors) this.#forget((other) => other.connections === 0);
      const { eventsPerMinutePerIp, badFramesPerMinutePerIp, receivePerSecondPerIpBytes } = this.relay.limits;
      const nowMs = this.clock.monotonicMs();
      visitor = {
        connections: 0,
        events: new TokenBucket(perMinute(eventsPerMinutePerIp), nowMs),
        badFrames: new TokenBucket(perMinute(badFramesPerMinutePerIp), nowMs),
        bytes: new TokenBucket(perSecond(receivePerSecondPerIpBytes), nowMs),
        turns: new LoopTurns(),
      };
      this.#byGroup.set(group, visitor);
    }
    visitor.connections++;
    this.#connections++;
    return new Visit(this, visitor);
  }

  leave(visitor: Visitor): void {
    visitor.connections--;
    this.#connections--;
  }

  /** Forgets who left and has nothing to be remembered for. */
  sweep(): void {
    const nowMs = this.clock.monotonicMs();
    const { eventsPerMinutePerIp, badFramesPerMinutePerIp, receivePerSecondPerIpBytes } = this.relay.limits;
    const bytes = perSecond(receivePerSecondPerIpBytes);
    const events = perMinute(eventsPerMinutePerIp);
    const badFrames = perMinute(badFramesPerMinutePerIp);
    this.#forget(
      (visitor) =>
        visitor.connections === 0 &&
        visitor.events.isFull(events, nowMs) &&
        visitor.badFrames.isFull(badFrames, nowMs) &&
        visitor.bytes.isFull(bytes, nowMs),
    );
  }

  #forget(which: (visitor: Visitor) => boolean): void {
    for (const [group, visitor] of this.#byGroup) if (which(visitor)) this.#byGroup.delete(group);
  }
}
