// Properties 3, 4, 7, 9, 10 and 11, watched on every command as the relay would see it, with its own idea of back-off.

import { kinds, type NostrEvent } from "../src/nostr/event.js";
import type { Filter } from "../src/nostr/filter.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import type { Command, Input, Outcome } from "../src/sync/core/messages.js";
import { lists } from "./events.js";
import { FullSyncWatch } from "./full-syncs.js";
import { FullSyncs, Sighting } from "./sightings.js";

const hour = 60 * 60 * 1000;
const maxWakesPerSecond = 50;
const quickRestartMs = 5 * 60 * 1000;
const rounding = 1;
/** A moment above the budget, while one filter takes the place of another. */
const replacedFilters = 3;

export class Watch {
  readonly problems: string[] = [];
  readonly relays = new Map<string, Sighting>();
  readonly #fullSyncs: FullSyncWatch;
  readonly #touched = new Set<Sighting>();
  readonly #told = new Set<string>();
  isStorm = false;
  #stoodStillMs = Number.NEGATIVE_INFINITY;
  readonly #announced = new Set<string>();
  #hasJumped = false;
  #second = 0;
  #wakes = 0;
  requests = 0;
  dials = 0;
  offers = 0;
  confirmedBatches = 0;
  onAsked: (relay: string, filters: readonly Filter[]) => void = () => undefined;
  onAskedFor: (relay: string, filters: readonly Filter[]) => void = () => undefined;
  onDialled: (relay: string) => void = () => undefined;

  constructor(readonly config: SyncConfig) {
    this.#fullSyncs = new FullSyncWatch(config, {
      broken: (text, nowMs) => this.broken(7, text, nowMs),
      storm: (text, nowMs) => this.#storm(7, text, nowMs),
    });
  }

  of(relay: string): Sighting {
    const seen = this.relays.get(relay) ?? new Sighting();
    this.relays.set(relay, seen);
    return seen;
  }

  /** Each kind of problem is told once a relay. */
  broken(property: number, text: string, nowMs: number): void {
    const what = `${property} ${text.replaceAll(/\d+(?=[ .])/g, "")}`;
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.problems.push(`property ${property}: ${text} (at ${(nowMs / 1000).toFixed(1)} s)`);
  }

  /** Far more than allowed: the rest of the run would be the same, and take for ever. */
  #storm(property: number, text: string, nowMs: number): void {
    this.broken(property, text, nowMs);
    this.isStorm = true;
  }

  woken(nowMs: number): void {
    const second = Math.floor(nowMs / 1000);
    if (second !== this.#second) this.#wakes = 0;
    this.#second = second;
    this.#wakes += 1;
    if (this.#wakes === maxWakesPerSecond + 1) this.#storm(10, `woken ${this.#wakes} times in a second`, nowMs);
  }

  /** The next step gives up every link, whatever it is about. */
  jumped(): void {
    this.disturbed();
    this.#hasJumped = true;
  }

  /** The clock jumped or lists changed: what is known of every relay may be asked for again. */
  disturbed(): void {
    for (const seen of this.relays.values()) seen.fullSyncs.wasDisturbed = true;
  }

  /** No relay is to blame for what it did not say while we did not listen. */
  stoodStill(nowMs: number, forMs: number): void {
    this.disturbed();
    this.#stoodStillMs = nowMs;
    for (const seen of this.relays.values()) {
      // It counts from the last step on, up to a minute before.
      seen.firstFailureMs += forMs + 60_000;
      // What it had been silent for before counts.
      for (const [name, openedMs] of seen.sessions)
        if (openedMs !== undefined) seen.sessions.set(name, openedMs + forMs);
    }
  }

  /** Our server stops: its links are gone, and it will know of no failure. */
  restarting(nowMs: number, inStep: ReadonlySet<string>): void {
    for (const [key, seen] of this.relays) {
      this.#fullSyncs.lost(seen, nowMs);
      // Only a relay that was in step is believed to be; that is written down late.
      if (!inStep.has(key) || nowMs - seen.fullSyncs.lastMs < 2 * quickRestartMs) seen.fullSyncs.wasRefused = true;
      this.#linkGone(seen);
      seen.fullSyncs.resyncs = 0;
      Object.assign(seen, { dialing: false, failures: 0, dialNotBeforeMs: 0, askNotBeforeMs: 0 });
    }
  }

  isUnderWay(relay: string, session: string): boolean {
    return this.of(relay).sessions.has(session);
  }

  /** NEG-OPEN has been sent. */
  opened(relay: string, session: string, nowMs: number): void {
    const seen = this.of(relay);
    seen.sessions.set(session, nowMs);
    seen.sessionBeganMs = nowMs;
  }

  judged(relay: string, outcome: Outcome, nowMs: number): void {
    if (outcome.type !== "refused" || outcome.code !== "disk-full") return;
    Object.assign(this.of(relay).fullSyncs, { wasTroubled: true, troubleMs: nowMs });
  }

  /** What the relay really said, before any deliberate break changes it. */
  heard(input: Input, nowMs: number): void {
    if (input.type === "listsChanged") this.disturbed();
    if (this.#hasJumped) this.#stoodStillMs = nowMs;
    this.#hasJumped = false;
    if (input.type === "accepted" && input.event.kind === kinds.announcement) this.#listed(input.event, nowMs);
    if (!("link" in input)) return;
    const seen = this.of(input.relay);
    this.#touched.add(seen);
    this.#fullSyncs.heard(seen, input, nowMs);
    switch (input.type) {
      case "connected":
        seen.dialing = false;
        seen.connected = true;
        seen.connectedMs = nowMs;
        // Should it come to be live with its catch-up done, it is not dead any more.
        seen.firstFailureMs = nowMs;
        break;
      case "connectFailed":
        seen.dialing = false;
        this.#failed(seen, nowMs);
        break;
      case "closed":
        // The core had given it up before it heard of its end.
        if (!seen.connected) break;
        if (nowMs - seen.connectedMs >= 5 * 60 * 1000) seen.failures = 0;
        this.#linkGone(seen);
        // Whoever stood still ended it, not the relay.
        if (nowMs - this.#stoodStillMs > 1000) this.#failed(seen, nowMs);
        break;
      case "eose":
        seen.eosed.add(input.subscription);
        break;
      case "reconcileProgress":
        if (seen.sessions.get(input.session) !== undefined) seen.sessions.set(input.session, nowMs);
        break;
      case "reconciled":
        seen.eosed.add(input.session);
        seen.sessions.delete(input.session);
        break;
      case "reconcileFailed":
        seen.sessions.delete(input.session);
        if (input.kind === "rate-limited") seen.askNotBeforeMs = nowMs + 65_000;
        else seen.negentropyFailed = true;
        break;
      case "subscriptionClosed":
        seen.live.delete(input.subscription);
        seen.history.delete(input.subscription);
        if (input.message.startsWith("rate-limited")) seen.askNotBeforeMs = nowMs + 65_000;
        break;
      case "notice":
        if (input.message.includes("too many")) seen.askNotBeforeMs = nowMs + 65_000;
        if (!input.message.includes("NEG-OPEN")) break;
        seen.sessions.clear();
        seen.negentropyFailed = true;
        break;
    }
  }

  /** Told of again after a restart, it is not new. */
  #listed(event: NostrEvent, nowMs: number): void {
    if (this.#announced.has(event.id)) return;
    this.#announced.add(event.id);
    for (const [key, { fullSyncs }] of this.relays) if (lists(event, key)) fullSyncs.listedMs = nowMs;
  }

  #failed(seen: Sighting, nowMs: number): void {
    if (seen.failures === 0) seen.firstFailureMs = nowMs;
    seen.failures += 1;
    const dead = nowMs - seen.firstFailureMs >= 24 * hour;
    const wait = dead ? 24 * hour : Math.min(5000 * 2 ** (seen.failures - 1), hour);
    seen.dialNotBeforeMs = nowMs + wait * 0.8 - 1;
  }

  #linkGone(seen: Sighting): void {
    seen.connected = false;
    seen.live.clear();
    seen.history.clear();
    seen.sessions.clear();
    seen.eosed.clear();
  }

  said(command: Command, nowMs: number): void {
    if (command.type === "offerToIntake") this.offers += 1;
    if (command.type === "log" && command.relay) this.#logged(command.code, command.relay, command.fields, nowMs);
    if (command.type === "count" && command.relay && command.counter === "negentropy" && command.label === "failed")
      this.#countedFailure(command.relay, nowMs);
    if (!("relay" in command) || command.relay === undefined || !("link" in command)) return;
    const seen = this.of(command.relay);
    this.#touched.add(seen);
    switch (command.type) {
      case "connect":
        this.dials += 1;
        this.onDialled(command.relay);
        if (seen.connected || seen.dialing) this.broken(3, `second connection to ${command.relay}`, nowMs);
        if (nowMs < seen.dialNotBeforeMs) this.broken(4, `${command.relay} dialled before its back-off ended`, nowMs);
        seen.dialing = true;
        break;
      case "disconnect":
        seen.dialing = false;
        if (seen.connected && nowMs - seen.connectedMs >= 5 * 60 * 1000) seen.failures = 0;
        this.#fullSyncs.lost(seen, nowMs);
        this.#linkGone(seen);
        break;
      case "unsubscribe":
        if (seen.history.delete(command.subscription) && !seen.eosed.has(command.subscription))
          this.#fullSyncs.failed(seen);
        seen.live.delete(command.subscription);
        break;
      case "stopReconcile": {
        const openedMs = seen.sessions.get(command.session);
        const lastedMs = nowMs - seen.sessionBeganMs + rounding;
        const isTooLong = openedMs !== undefined && lastedMs >= this.config.negentropyTimeoutMs;
        if (isTooLong || nowMs - (openedMs ?? nowMs) >= 10_000) seen.negentropyFailed = true;
        seen.sessions.delete(command.session);
        break;
      }
      case "subscribe":
      case "reconcile":
        this.#asked(seen, command, nowMs);
        break;
    }
  }

  #logged(code: string, relay: string, fields: Extract<Command, { type: "log" }>["fields"], nowMs: number): void {
    const seen = this.of(relay);
    if (code === "relay-dropped" || code === "relay-gave-way") {
      // Forgotten once its back-off is over; until then the wait stands.
      seen.failures = 0;
      seen.fullSyncs = new FullSyncs();
    }
    if (code !== "batch-confirmed") return;
    this.confirmedBatches += 1;
    const ended = fields?.ended as readonly string[];
    const unheard = ended.filter((name) => !seen.eosed.has(name));
    if (unheard.length > 0) this.broken(5, `${relay} confirmed by ${unheard[0]}, which never reached EOSE`, nowMs);
  }

  #countedFailure(relay: string, nowMs: number): void {
    const seen = this.of(relay);
    if (!seen.negentropyFailed) this.broken(8, `a failure of negentropy is told of ${relay}, which had none`, nowMs);
    seen.negentropyFailed = false;
  }

  #asked(seen: Sighting, command: Extract<Command, { type: "subscribe" | "reconcile" }>, nowMs: number): void {
    const { relay } = command;
    this.requests += 1;
    this.#fullSyncs.asked(seen, command, nowMs);
    this.onAsked(relay, command.type === "reconcile" ? [command.filter] : command.filters);
    this.onAskedFor(relay, command.type === "reconcile" ? [command.filter] : command.filters);
    if (nowMs < seen.askNotBeforeMs) this.broken(4, `${relay} asked during its rate-limit pause`, nowMs);
    if (command.type === "reconcile") seen.sessions.set(command.session, undefined);
    else if (command.subscription.startsWith("l")) seen.live.set(command.subscription, command.filters.length);
    else seen.history.add(command.subscription);
    const liveFilters = [...seen.live.values()].reduce((sum, filters) => sum + filters, 0);
    const mostFilters = this.config.syncMaxFilters + replacedFilters;
    if (liveFilters > mostFilters) this.broken(3, `${relay} has ${liveFilters} live filters`, nowMs);
    if (seen.history.size > 4) this.broken(3, `${relay} has ${seen.history.size} history subscriptions`, nowMs);
    if (seen.sessions.size > 1) this.broken(3, `${relay} has ${seen.sessions.size} negentropy sessions`, nowMs);
    if (seen.sessions.size > 0 && seen.history.size > 0)
      this.broken(3, `${relay} has a session beside history subscriptions`, nowMs);
  }

  /** All commands of a step are carried out. */
  stepEnded(nowMs: number): void {
    for (const seen of this.#touched) this.#fullSyncs.stepEnded(seen, nowMs);
    this.#touched.clear();
  }

  /** A restart is a reconnect, unless it took so long that everything is asked for again. */
  restarted(downMs: number): void {
    if (downMs < quickRestartMs) return;
    for (const seen of this.relays.values()) seen.fullSyncs = new FullSyncs();
  }
}
