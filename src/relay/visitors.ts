// Connections and event rates by address (spec/relay.md "Limits"; threats row 25). One entry a visitor: it lives while
// he is connected, and after that until his rate has grown back, so that reconnecting wins nothing.

import { ipGroup } from "../base/budget/address-group.js";
import { perMinute, perSecond, TokenBucket } from "../base/budget/rates.js";
import type { Clock } from "../base/clock.js";
import { LoopTurns } from "../base/loop-turns.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { RelayLimits } from "./limits.js";

interface Visitor {
  connections: number;
  readonly events: TokenBucket;
  readonly badFrames: TokenBucket;
  readonly bytes: TokenBucket;
  readonly answers: LoopTurns;
}

export interface Visit {
  /** Of the stored answers to the address: hundreds that begin at once would hold up everybody. */
  readonly answers: LoopTurns;
  /** Whether the address may send another event now. */
  readonly maySendEvents: boolean;
  /** Takes an event from the address's rate, as many times as it is work. */
  takeEvent(cost: number): boolean;
  /** Takes from how much the address may send that is not understood. */
  takeBadFrame(cost: number): boolean;
  /** Counts what came from the address. Answers for how long nothing more is read from it; 0: go on. */
  arrived(bytes: number): number;
  end(): void;
}

class Presence implements Visit {
  readonly #visitors: Visitors;
  readonly #visitor: Visitor;
  #isOver = false;

  constructor(visitors: Visitors, visitor: Visitor) {
    this.#visitors = visitors;
    this.#visitor = visitor;
  }

  get answers(): LoopTurns {
    return this.#visitor.answers;
  }

  get maySendEvents(): boolean {
    return this.#visitors.maySendEvents(this.#visitor);
  }

  takeEvent(cost: number): boolean {
    return this.#visitors.takeEvent(this.#visitor, cost);
  }

  takeBadFrame(cost: number): boolean {
    return this.#visitors.takeBadFrame(this.#visitor, cost);
  }

  arrived(bytes: number): number {
    return this.#visitors.arrived(this.#visitor, bytes);
  }

  end(): void {
    if (!this.#isOver) this.#visitors.leave(this.#visitor);
    this.#isOver = true;
  }
}

/** Entries of people who left are forgotten early when there are this many. */
const maxVisitors = 100_000;

export class Visitors {
  readonly #clock: Clock;
  readonly #limits: () => RelayLimits;
  readonly #byGroup = new Map<string, Visitor>();
  #connections = 0;

  constructor(clock: Clock, limits: () => RelayLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

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
    const { maxConnections, maxConnectionsPerIp } = this.#limits();
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
      const { eventsPerMinutePerIp, badFramesPerMinutePerIp, receivePerSecondPerIpBytes } = this.#limits();
      const nowMs = this.#clock.monotonicMs();
      visitor = {
        connections: 0,
        events: new TokenBucket(perMinute(eventsPerMinutePerIp), nowMs),
        badFrames: new TokenBucket(perMinute(badFramesPerMinutePerIp), nowMs),
        bytes: new TokenBucket(perSecond(receivePerSecondPerIpBytes), nowMs),
        answers: new LoopTurns(),
      };
      this.#byGroup.set(group, visitor);
    }
    visitor.connections++;
    this.#connections++;
    return new Presence(this, visitor);
  }

  maySendEvents(visitor: Visitor): boolean {
    return visitor.events.waitMs(perMinute(this.#limits().eventsPerMinutePerIp), this.#clock.monotonicMs()) === 0;
  }

  takeEvent(visitor: Visitor, cost: number): boolean {
    return visitor.events.take(perMinute(this.#limits().eventsPerMinutePerIp), this.#clock.monotonicMs(), cost);
  }

  takeBadFrame(visitor: Visitor, cost: number): boolean {
    return visitor.badFrames.take(perMinute(this.#limits().badFramesPerMinutePerIp), this.#clock.monotonicMs(), cost);
  }

  arrived(visitor: Visitor, bytes: number): number {
    return visitor.bytes.spend(perSecond(this.#limits().receivePerSecondPerIpBytes), this.#clock.monotonicMs(), bytes);
  }

  leave(visitor: Visitor): void {
    visitor.connections--;
    this.#connections--;
  }

  /** Forgets who left and has nothing to be remembered for. */
  sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    const { eventsPerMinutePerIp, badFramesPerMinutePerIp, receivePerSecondPerIpBytes } = this.#limits();
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
