// The sizes of spec "Scale", driven against the real core with relays that answer at once: memory, time, and what
// one new issue costs.

import { collectGarbage } from "../src/base/collect-garbage.js";
import type { RelayLimits } from "../src/net/relay-dialer.js";
import type { NostrEvent, Pubkey } from "../src/nostr/event.js";
import type { Filter } from "../src/nostr/filter.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import { SyncCore } from "../src/sync/core/core.js";
import type { Command, Input, Participant } from "../src/sync/core/messages.js";
import { syncConfig } from "../src/sync/core/testing/config.js";
import { announcement, makeEvent, newPubkey, ownHost, startWallMs } from "./events.js";
import { Chance } from "./random.js";

export interface ScaleResult {
  readonly name: string;
  readonly seconds: number;
  /** Growth of the process's memory, heap and typed arrays together, after a collection. */
  readonly memoryMib: number;
  readonly rssMib: number;
  readonly issueMs: { readonly median: number; readonly worst: number };
  readonly liveFilters: number;
  readonly rotatingRoots: number;
  readonly unconfirmed: number;
  readonly requests: number;
}

/** Relays that answer everything at once, with nothing unless told otherwise: what is measured is the core. */
export class Mirror {
  readonly core: SyncCore;
  readonly chance = new Chance(42);
  nowMs = 0;
  #wakeMs = Number.POSITIVE_INFINITY;
  requests = 0;
  readonly #limits: RelayLimits | undefined;
  /** What a relay has for a filter. */
  eventsFor: (filter: Filter) => readonly NostrEvent[] = () => [];
  participantsOf: (coordinate: string) => readonly Participant[] = () => [];

  constructor(limits: RelayLimits | undefined, config: Partial<SyncConfig> = {}) {
    this.core = new SyncCore(syncConfig({ ownServices: [ownHost], ...config }));
    this.#limits = limits;
  }

  tell(first: Input): void {
    const inputs: Input[] = [first];
    for (let at = 0; at < inputs.length; at++) {
      const commands = this.core.step(
        inputs[at]!,
        { wallMs: startWallMs + this.nowMs, monotonicMs: this.nowMs },
        this.chance.next,
      );
      for (const command of commands) this.#answer(command, inputs);
    }
  }

  #answer(command: Command, inputs: Input[]): void {
    switch (command.type) {
      case "wakeAt":
        this.#wakeMs = command.monotonicMs;
        break;
      case "connect":
        inputs.push({ type: "connected", relay: command.relay, link: command.link });
        if (this.#limits)
          inputs.push({ type: "nip11", limits: this.#limits, relay: command.relay, link: command.link });
        break;
      case "subscribe":
        this.requests += 1;
        for (const event of command.filters.flatMap((filter) => this.eventsFor(filter))) {
          const { relay, link, subscription } = command;
          inputs.push({ type: "event", subscription, event, relay, link });
        }
        inputs.push({ type: "eose", subscription: command.subscription, relay: command.relay, link: command.link });
        break;
      case "reconcile":
        this.requests += 1;
        inputs.push({
          type: "reconciled",
          session: command.session,
          missing: [],
          peerMissing: 0,
          relay: command.relay,
          link: command.link,
        });
        break;
      case "lookUpParticipants": {
        const { coordinate } = command;
        inputs.push({ type: "participants", coordinate, participants: this.participantsOf(coordinate), lists: [] });
        break;
      }
      case "offerToIntake": {
        const { relay, source, layerFour, event } = command;
        inputs.push({ type: "verdict", relay, source, layerFour, event, outcome: { type: "stored" } });
        break;
      }
    }
  }

  runFor(ms: number): void {
    const endMs = this.nowMs + ms;
    while (this.#wakeMs <= endMs) {
      this.nowMs = Math.max(this.nowMs, this.#wakeMs);
      this.#wakeMs = Number.POSITIVE_INFINITY;
      this.tell({ type: "tick" });
    }
    this.nowMs = endMs;
  }
}

export function usedMib(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 2 ** 20;
}

function issueFor(chance: Chance, coordinate: string): NostrEvent {
  return makeEvent(chance, {
    pubkey: newPubkey(chance),
    kind: 1621,
    created_at: Math.floor(startWallMs / 1000) - chance.between(0, 1e7),
    tags: [["a", coordinate]],
  });
}

interface Sizes {
  readonly repos: number;
  readonly roots: number;
  readonly relays: number;
  readonly perRepo: number;
  readonly limits?: RelayLimits;
}

export function loadRun(name: string, sizes: Sizes): ScaleResult {
  const chance = new Chance(7);
  const before = usedMib();
  const startMs = performance.now();
  const mirror = new Mirror(sizes.limits);
  const coordinates: string[] = [];
  for (let n = 0; n < sizes.repos; n++) {
    const owner: Pubkey = newPubkey(chance);
    const relays = new Set<number>();
    while (relays.size < Math.min(sizes.perRepo, sizes.relays)) relays.add(chance.zipf(sizes.relays));
    const urls = [...relays].map((relay) => `wss://relay-${relay}.example`);
    mirror.tell({
      type: "accepted",
      event: announcement(chance, owner, `repo-${n}`, 1_600_000_000, urls, true),
      hosted: true,
    });
    coordinates.push(`30617:${owner}:repo-${n}`);
    for (let root = 0; root < sizes.roots; root++)
      mirror.tell({ type: "accepted", event: issueFor(chance, coordinates[n]!) });
  }
  mirror.tell({ type: "replayEnded" });
  mirror.runFor(60_000);
  const seconds = (performance.now() - startMs) / 1000;
  const memoryMib = usedMib() - before;
  const times: number[] = [];
  for (let n = 0; n < 200; n++) {
    const event = issueFor(chance, chance.of(coordinates));
    const from = performance.now();
    mirror.tell({ type: "accepted", event });
    mirror.runFor(5_000);
    times.push(performance.now() - from);
    mirror.runFor(1_000);
  }
  times.sort((a, b) => a - b);
  const snapshot = mirror.core.snapshot({ wallMs: startWallMs + mirror.nowMs, monotonicMs: mirror.nowMs });
  return {
    name,
    seconds,
    memoryMib,
    rssMib: process.memoryUsage().rss / 2 ** 20,
    issueMs: { median: times[100]!, worst: times[199]! },
    liveFilters: Math.max(...snapshot.relays.map((relay) => relay.liveFilters)),
    rotatingRoots: Math.max(...snapshot.relays.map((relay) => relay.rotatingRoots)),
    unconfirmed: snapshot.relays.reduce((sum, relay) => sum + relay.items - relay.confirmedItems, 0),
    requests: mirror.requests,
  };
}

/** A hundred live events a second for ten minutes, over a hundred repositories on ten relays. */
export function busyRun(): ScaleResult {
  const chance = new Chance(9);
  const before = usedMib();
  const startMs = performance.now();
  const mirror = new Mirror(undefined);
  const coordinates: string[] = [];
  for (let n = 0; n < 100; n++) {
    const owner = newPubkey(chance);
    const urls = [0, 1, 2].map((at) => `wss://relay-${(n + at) % 10}.example`);
    mirror.tell({
      type: "accepted",
      event: announcement(chance, owner, `repo-${n}`, 1_600_000_000, urls, true),
      hosted: true,
    });
    coordinates.push(`30617:${owner}:repo-${n}`);
  }
  mirror.tell({ type: "replayEnded" });
  mirror.runFor(30_000);
  const times: number[] = [];
  for (let n = 0; n < 100 * 600; n++) {
    const at = chance.between(0, 99);
    const event = makeEvent(chance, {
      pubkey: newPubkey(chance),
      kind: 1111,
      created_at: 1_700_000_000,
      tags: [["A", coordinates[at]!]],
    });
    const from = performance.now();
    mirror.tell({ type: "event", relay: `relay-${at % 10}.example`, link: (at % 10) + 1, subscription: "l0", event });
    times.push(performance.now() - from);
    if (n % 100 === 0) mirror.runFor(1000);
  }
  times.sort((a, b) => a - b);
  return {
    name: "100 events/s for 10 min",
    seconds: (performance.now() - startMs) / 1000,
    memoryMib: usedMib() - before,
    rssMib: process.memoryUsage().rss / 2 ** 20,
    issueMs: { median: times[times.length >> 1]!, worst: times[times.length - 1]! },
    liveFilters: 0,
    rotatingRoots: 0,
    unconfirmed: 0,
    requests: mirror.requests,
  };
}

/**
 * A thousand repositories of twenty participants each, out of 5,000 people who write to 2 to 6 of 1,000 relays, a few of
 * which most people use; an hour in which everything is gathered for the first time, then an hour of passes.
 */
export function outboxRun(repos = 1_000, people = 5_000): ScaleResult & { readonly outbox: OutboxNumbers } {
  const chance = new Chance(11);
  const before = usedMib();
  const startMs = performance.now();
  const mirror = new Mirror(undefined, { indexRelays: ["wss://index.example" as SyncConfig["indexRelays"][number]] });
  const lists = new Map<string, NostrEvent>();
  const keys = Array.from({ length: people }, () => newPubkey(chance));
  for (const pubkey of keys) {
    const tags = Array.from({ length: chance.between(2, 6) }, () => ["r", `wss://own-${chance.zipf(1_000)}.example`]);
    lists.set(pubkey, makeEvent(chance, { pubkey, kind: 10002, created_at: 1_600_000_000, tags }));
  }
  mirror.eventsFor = (filter) =>
    filter.kinds?.[0] === 10002 && filter.kinds.length === 1
      ? (filter.authors ?? []).flatMap((author) => lists.get(author) ?? [])
      : [];
  mirror.participantsOf = () =>
    Array.from({ length: 20 }, (_, at) => ({
      pubkey: chance.of(keys),
      role: at === 0 ? "maintainer" : "author",
      activeSeconds: 1_600_000_000 + at,
    }));
  for (let n = 0; n < repos; n++) {
    const owner = chance.of(keys);
    const urls = Array.from({ length: 3 }, () => `wss://relay-${chance.zipf(100)}.example`);
    const event = announcement(chance, owner, `repo-${n}`, 1_600_000_000, urls, true);
    mirror.tell({ type: "accepted", event, hosted: true });
    for (let root = 0; root < 20; root++)
      mirror.tell({ type: "accepted", event: issueFor(chance, `30617:${owner}:repo-${n}`) });
  }
  mirror.tell({ type: "replayEnded" });
  mirror.runFor(60 * 60_000);
  const memoryMib = usedMib() - before;
  const firstHour = mirror.requests;
  mirror.runFor(60 * 60_000);
  const snapshot = mirror.core.snapshot({ wallMs: startWallMs + mirror.nowMs, monotonicMs: mirror.nowMs });
  const { relays, live, participants, unplaced, incomplete } = snapshot.outbox;
  const unlisted = snapshot.relays.filter((relay) => relay.waitingOnly);
  return {
    name: `${repos} repositories × 20 participants on 1,000 relays of their own`,
    seconds: (performance.now() - startMs) / 1000,
    memoryMib,
    rssMib: process.memoryUsage().rss / 2 ** 20,
    issueMs: { median: 0, worst: 0 },
    liveFilters: Math.max(...snapshot.relays.map((relay) => relay.liveFilters)),
    rotatingRoots: Math.max(...snapshot.relays.map((relay) => relay.rotatingRoots)),
    unconfirmed: snapshot.relays.reduce((sum, relay) => sum + relay.items - relay.confirmedItems, 0),
    requests: mirror.requests,
    outbox: {
      ...{ relays, live, participants, unplaced, incomplete },
      unlisted: unlisted.length,
      pairs: snapshot.relays.reduce((sum, relay) => sum + relay.outboxRepositories, 0),
      requestsFirstHour: firstHour,
      requestsSecondHour: mirror.requests - firstHour,
    },
  };
}

interface OutboxNumbers {
  readonly relays: number;
  readonly unlisted: number;
  readonly live: number;
  readonly participants: number;
  /** (Repository, relay): the items. */
  readonly pairs: number;
  readonly unplaced: number;
  readonly incomplete: number;
  readonly requestsFirstHour: number;
  readonly requestsSecondHour: number;
}

export const scaleRuns: readonly (() => ScaleResult & { readonly outbox?: OutboxNumbers })[] = [
  () => loadRun("10,000 repos × 50 roots × 5 of 500 relays", { repos: 10_000, roots: 50, relays: 500, perRepo: 5 }),
  () => loadRun("1,000 repos × 500 roots on one relay", { repos: 1_000, roots: 500, relays: 1, perRepo: 1 }),
  () =>
    loadRun("50,000 roots between two Holdfasts", {
      repos: 1_000,
      roots: 50,
      relays: 1,
      perRepo: 1,
      limits: {
        maxFilterValues: 5000,
        maxMessageBytes: 5 * 2 ** 20,
        maxFilters: 100,
        maxSubscriptions: 300,
        maxLimit: 5000,
      },
    }),
  busyRun,
  outboxRun,
];
