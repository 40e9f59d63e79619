// The shell around the sync core: gives it inputs and the time, carries out its commands. Owns the one wake-up timer
// and the order of inputs; decides nothing.

import type { Clock } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { repositoryAddress, repositoryNamed } from "../catalogue/repositories.js";
import type { Logger } from "../config/logging.js";
import type { Context } from "../context.js";
import type { Intake } from "../intake/intake.js";
import { reachOf } from "../net/address.js";
import { RelayDialer } from "../net/relay-dialer.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { SecretKey } from "../nostr/keys.js";
import type { AwaitedEvent, Notice } from "../purgatory/bell.js";
import { StoreClosedError } from "../store/port.js";
import { Connections } from "./connections.js";
import type { SyncConfig } from "./core/config.js";
import { SyncCore } from "./core/core.js";
import type { Command, Input, RelayKey, Time } from "./core/messages.js";
import type { OutboxStanding } from "./core/outbox-standing.js";
import type { Copy, CoreSnapshot } from "./core/standing.js";
import { KeptRows } from "./kept-rows.js";
import type { SyncMetrics } from "./metrics.js";
import { Offers, pause } from "./offers.js";
import { OwnFeed, ownSide, participantsOf, relatedTo, rootsOf, WaitingAnnouncements } from "./own-server.js";

export interface EngineRooms {
  readonly intake: Intake;
  /** Relays may ask who we are (NIP-42). */
  readonly serverSecret: SecretKey;
  /** A relay, by its name as a service, serves an event that waits here for its git data. */
  readonly servedThere: (id: EventId, relay: RelayKey) => void;
  /** Whose relay it is, as its information document says. */
  readonly runBy?: (relay: RelayKey, keys: readonly Pubkey[]) => void;
}

export class SyncEngine {
  readonly #core: SyncCore;
  readonly #waiting: WaitingAnnouncements;
  readonly #connections: Connections;
  readonly #offers: Offers;
  readonly #kept: KeptRows;
  readonly #stop = sharedAbort();
  #inbox: Input[] = [];
  #draining = false;
  /** What was kept is with the core: from then on it is told what happens. */
  #loaded = false;
  #cancelWake: () => void = () => undefined;
  #following: Promise<void> = Promise.resolve();
  readonly #work = new Set<Promise<void>>();

  /** `config` may be changed while the engine runs: the core reads it when it needs it. */
  constructor(
    private readonly context: Context,
    private readonly config: SyncConfig,
    private readonly metrics: SyncMetrics,
    private readonly rooms: EngineRooms,
  ) {
    const { live, store, clock, logger, version, onFault } = context;
    this.#core = new SyncCore(config);
    this.#waiting = new WaitingAnnouncements(store, (input) => this.tell(input));
    this.#kept = new KeptRows(store, clock, onFault);
    const settings = () => live.current;
    this.#connections = new Connections({
      dialer: new RelayDialer(
        clock,
        settings,
        () => reachOf(live.current),
        `holdfast/${version}`,
        live.current.privateMode ? rooms.serverSecret : undefined,
      ),
      serverKey: rooms.serverSecret,
      own: ownSide(store, clock, () => live.current.negentropyMaxRecords),
      tell: (input) => this.tell(input),
      bytes: (relay, direction, count) => metrics.bytes(relay, direction, count),
      runBy: (relay, keys) => rooms.runBy?.(relay, keys),
      dialFailed: (relay, message) => logger.debug({ relay, reason: message }, "dialling failed"),
      fault: onFault,
    });
    this.#offers = new Offers({
      store,
      intake: rooms.intake,
      clock,
      verdict: (offer, outcome) => this.tell({ ...offer, type: "verdict", outcome }),
      full: (held) => {
        this.#connections.holdAll(held);
        this.tell({ type: "readingHeld", held });
      },
      fault: onFault,
    });
    metrics.watch(() => this.snapshot());
  }

  /** Loads what was kept, then follows our own feed; nobody waits for it, and what is told meanwhile waits. */
  async start(): Promise<void> {
    await this.#waiting.open();
    const { store, clock, onFault } = this.context;
    const { signal } = this.#stop;
    const heard = (input: Input): void => this.#waiting.fromFeed(input);
    const feed = new OwnFeed(store, heard, () => this.tell({ type: "replayEnded" }));
    this.#following = this.#load()
      .catch(onFault)
      .then(() => {
        this.#loaded = true;
        this.tell({ type: "tick" });
        return untilDone(() => feed.follow(signal), clock, signal, onFault);
      });
  }

  /** Purgatory's bell. What our own server accepted is told by its feed, or here where the feed has no entry for it. */
  heard({ changes, ids, reviewed, awaited }: Notice): void {
    this.#waiting.decided(changes);
    if (reviewed) this.tell({ type: "accepted", ...reviewed });
    this.askFor(awaited);
    void this.#waiting.recheck(ids).catch(this.context.onFault);
  }

  /**
   * At the relays of their repositories and at the bootstrap relays (purgatory.md "Placeholder"); what was pushed under
   * `/prs/` also at its signer's own relays, because it may have been sent nowhere else.
   */
  askFor(awaited: Iterable<AwaitedEvent>): void {
    const byRepository = new Map<string, EventId[]>();
    for (const { id, repository } of awaited) {
      const ids = byRepository.get(repository);
      if (ids) ids.push(id);
      else byRepository.set(repository, [id]);
    }
    for (const [repository, ids] of byRepository) {
      const name = repositoryNamed(repository);
      if (!name) continue;
      const { owner, identifier } = name;
      const coordinate = repositoryAddress({ owner, identifier });
      this.tell({ type: "wantIds", ids, coordinate, ...(name.area === "prs" && { signer: owner }) });
    }
  }

  async #load(): Promise<void> {
    const nowMs = this.context.clock.nowMs();
    for await (const entries of this.#kept.remembered(nowMs)) {
      if (this.#stop.signal.aborted) return;
      this.#step({ type: "rememberedLoaded", entries });
    }
    this.#step({ type: "relaysLoaded", entries: await this.#kept.relays() });
    this.#step({ type: "naughtyLoaded", entries: await this.#kept.naughty(nowMs) });
  }

  tell(input: Input): void {
    if (this.#stop.signal.aborted) return;
    this.#inbox.push(input);
    if (this.#draining || !this.#loaded) return;
    this.#draining = true;
    try {
      while (this.#inbox.length > 0) {
        const inbox = this.#inbox;
        this.#inbox = [];
        for (const next of inbox) this.#step(next);
      }
    } finally {
      this.#draining = false;
    }
  }

  #step(input: Input): void {
    for (const command of this.#core.step(input, this.now(), Math.random)) this.#execute(command);
  }

  snapshot(): CoreSnapshot {
    return this.#core.snapshot(this.now());
  }

  copiesOf(coordinate: string): Copy[] {
    return this.#core.copiesOf(coordinate, this.now());
  }

  outboxOf(coordinate: string): OutboxStanding | undefined {
    return this.#core.outboxOf(coordinate);
  }

  now(): Time {
    const { clock } = this.context;
    return { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  }

  async close(): Promise<void> {
    this.tell({ type: "stopping" });
    this.#stop.abort();
    this.#cancelWake();
    this.#connections.close();
    await this.#offers.close();
    await this.#following;
    await Promise.all(this.#work);
    await this.#kept.close();
  }

  #execute(command: Command): void {
    const { metrics } = this;
    switch (command.type) {
      case "wakeAt":
        this.#wakeAt(command.monotonicMs);
        break;
      case "offerToIntake":
        this.#offers.add(command);
        break;
      case "servedThere":
        this.rooms.servedThere(command.id, command.relay);
        break;
      case "lookUpRoots":
        this.#inBackground(() => this.#tellRoots(command.coordinate));
        break;
      case "lookUpParticipants":
        this.#inBackground(() => this.#tellParticipants(command.coordinate));
        break;
      case "lookUpRelated":
        this.#inBackground(() => this.#tellRelated(command));
        break;
      case "remember":
      case "forget":
      case "saveNaughty":
      case "dropNaughty":
      case "keepRelay":
      case "dropKept":
        this.#kept.execute(command);
        break;
      case "log":
        logSync(this.context.logger, command);
        break;
      case "count":
        metrics.count(command);
        break;
      case "observeLag":
        metrics.lag(command.seconds);
        break;
      default:
        this.#connections.execute(command);
    }
  }

  #wakeAt(monotonicMs: number): void {
    this.#cancelWake();
    this.#cancelWake = () => undefined;
    if (monotonicMs === Number.POSITIVE_INFINITY) return;
    const { clock } = this.context;
    // A millisecond more: timers count whole ones, and one that fires early would only be set again.
    const delayMs = Math.max(0, monotonicMs - clock.monotonicMs()) + 1;
    this.#cancelWake = clock.after(delayMs, () => this.tell({ type: "tick" }));
  }

  #inBackground(work: () => Promise<void>): void {
    const { clock, onFault } = this.context;
    const guarded = untilDone(work, clock, this.#stop.signal, onFault).finally(() => this.#work.delete(guarded));
    this.#work.add(guarded);
  }

  async #tellRoots(coordinate: string): Promise<void> {
    for await (const event of rootsOf(this.context.store, coordinate)) this.tell({ type: "accepted", event });
  }

  async #tellParticipants(coordinate: string): Promise<void> {
    const found = await participantsOf(this.context.store, coordinate, this.config);
    this.tell({ type: "participants", coordinate, ...found });
  }

  async #tellRelated(command: Extract<Command, { type: "lookUpRelated" }>): Promise<void> {
    const { relay, request, coordinates, after } = command;
    const found = await relatedTo(this.context.store, coordinates, after);
    this.tell({ type: "related", relay, request, ...found });
  }
}

/** The core's log codes. Levels are the core's (event-sync.md "logs"). */
const sentences: Readonly<Record<string, string>> = {
  connected: "connected to a relay",
  "connect-failed": "a relay could not be reached",
  "link-lost": "the connection to a relay was lost",
  "stood-still": "this process stood still, or the clock jumped: every link is made anew",
  "stale-reset": "away for too long: everything is compared anew",
  "daily-sync": "the daily comparison begins",
  resync: "what our own trouble lost is fetched with a full comparison",
  "daily-summary": "the daily comparison found events that live should have brought",
  "startup-summary": "history brought new events",
  "reconnect-summary": "a reconnect found events that live should have brought",
  "peer-missing-events": "the relay lacks events that are stored here",
  "live-event": "a live event",
  "live-consolidated": "live filters were made fewer and larger",
  "relay-dropped": "nothing needs this relay any more",
  "relay-gave-way": "a relay gave its place to one that found none",
  "relay-dead": "a relay has failed for a day: one try a day from now on",
  "relay-naughty": "a relay is plainly broken and left alone for a while",
  "negentropy-fallback": "a relay does not reconcile: history is read page by page",
  "repository-budget-hit": "a repository has brought its share of new events for today",
  "author-budget-hit": "an author has brought as many announcements and states under one identifier as a day takes",
  "relay-budget-hit": "a relay has brought its share of new events for today",
  "mostly-refused": "nearly everything a relay sent was refused: it is paused",
  unpageable: "a relay's pages cannot show all events of one second",
  "value-refused": "a relay refuses one value of a filter; the others go on without it",
  "batch-confirmed": "a batch of history is complete",
  "batch-failed": "a batch of history failed and will be tried again",
  "catch-up-failed": "catching up failed",
  "layer-four-failed": "looking for replies and deletions failed",
  "direct-failed": "fetching events by id failed",
  "lists-failed": "asking for people's relay lists failed",
};

function logSync(logger: Logger, { level, code, relay, fields }: Extract<Command, { type: "log" }>): void {
  logger[level]({ code, ...(relay !== undefined && { relay }), ...fields }, sentences[code] ?? code);
}

const againMs = 5_000;

/**
 * Tries until it was done, until the signal aborts, or until the store has closed: what sync lives on must outlast a
 * store that fails in passing.
 */
export async function untilDone(
  work: () => Promise<void>,
  clock: Clock,
  signal: AbortSignal,
  fault: (error: unknown) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
      return;
    } catch (error) {
      if (signal.aborted) return;
      fault(error);
      if (error instanceof StoreClosedError) return;
      await pause(clock, againMs, signal);
    }
  }
}
