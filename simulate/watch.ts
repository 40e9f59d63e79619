// Properties 3 and 4, watched on every command as the relay would see it, with its own idea of back-off.

import type { Command, Input } from "../src/sync/core/messages.js";

class Seen {
  connected = false;
  dialing = false;
  connectedMs = 0;
  readonly live = new Map<string, number>();
  readonly history = new Set<string>();
  readonly sessions = new Set<string>();
  failures = 0;
  firstFailureMs = 0;
  dialNotBeforeMs = 0;
  askNotBeforeMs = 0;
  readonly eosed = new Set<string>();
}

const hour = 60 * 60 * 1000;

export class Watch {
  readonly problems: string[] = [];
  readonly #relays = new Map<string, Seen>();
  requests = 0;
  dials = 0;
  offers = 0;
  confirmedBatches = 0;
  lastRequestMs = 0;

  #of(relay: string): Seen {
    const seen = this.#relays.get(relay) ?? new Seen();
    this.#relays.set(relay, seen);
    return seen;
  }

  #broken(property: number, text: string, nowMs: number): void {
    if (this.problems.length < 5)
      this.problems.push(`property ${property}: ${text} (at ${(nowMs / 1000).toFixed(1)} s)`);
  }

  /** What the relay really said, before any deliberate break changes it. */
  heard(input: Input, nowMs: number): void {
    if (!("link" in input)) return;
    const seen = this.#of(input.relay);
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
        if (nowMs - seen.connectedMs >= 5 * 60 * 1000) seen.failures = 0;
        this.#linkGone(seen);
        this.#failed(seen, nowMs);
        break;
      case "eose":
        seen.eosed.add(input.subscription);
        break;
      case "reconciled":
        seen.eosed.add(input.session);
        seen.sessions.delete(input.session);
        break;
      case "reconcileFailed":
        seen.sessions.delete(input.session);
        if (input.kind === "rate-limited") seen.askNotBeforeMs = nowMs + 65_000;
        break;
      case "subscriptionClosed":
        seen.live.delete(input.subscription);
        seen.history.delete(input.subscription);
        if (input.message.startsWith("rate-limited")) seen.askNotBeforeMs = nowMs + 65_000;
        break;
      case "notice":
        if (input.message.includes("too many")) seen.askNotBeforeMs = nowMs + 65_000;
        if (input.message.includes("NEG-OPEN")) seen.sessions.clear();
        break;
    }
  }

  #failed(seen: Seen, nowMs: number): void {
    if (seen.failures === 0) seen.firstFailureMs = nowMs;
    seen.failures += 1;
    const dead = nowMs - seen.firstFailureMs >= 24 * hour;
    const wait = dead ? 24 * hour : Math.min(5000 * 2 ** (seen.failures - 1), hour);
    seen.dialNotBeforeMs = nowMs + wait * 0.8 - 1;
  }

  #linkGone(seen: Seen): void {
    seen.connected = false;
    seen.live.clear();
    seen.history.clear();
    seen.sessions.clear();
    seen.eosed.clear();
  }

  said(command: Command, nowMs: number): void {
    if (command.type === "offerToIntake") this.offers += 1;
    if (command.type === "log" && command.code === "relay-dropped" && command.relay) {
      // Forgotten once its back-off is over; until then the wait stands.
      const seen = this.#of(command.relay);
      seen.failures = 0;
      return;
    }
    if (command.type === "log" && command.code === "batch-confirmed" && command.relay) {
      this.confirmedBatches += 1;
      const { eosed } = this.#of(command.relay);
      const ended = command.fields?.ended as readonly string[];
      const unheard = ended.filter((name) => !eosed.has(name));
      if (unheard.length > 0)
        this.#broken(5, `${command.relay} confirmed by ${unheard[0]}, which never reached EOSE`, nowMs);
      return;
    }
    if (!("relay" in command) || command.relay === undefined) return;
    const seen = this.#of(command.relay);
    switch (command.type) {
      case "connect":
        this.dials += 1;
        if (seen.connected || seen.dialing) this.#broken(3, `second connection to ${command.relay}`, nowMs);
        if (nowMs < seen.dialNotBeforeMs) this.#broken(4, `${command.relay} dialled before its back-off ended`, nowMs);
        seen.dialing = true;
        break;
      case "disconnect":
        seen.dialing = false;
        if (seen.connected && nowMs - seen.connectedMs >= 5 * 60 * 1000) seen.failures = 0;
        this.#linkGone(seen);
        break;
      case "unsubscribe":
        seen.live.delete(command.subscription);
        seen.history.delete(command.subscription);
        break;
      case "stopReconcile":
        seen.sessions.delete(command.session);
        break;
      case "subscribe":
      case "reconcile":
        this.#asked(seen, command, nowMs);
        break;
    }
  }

  #asked(seen: Seen, command: Extract<Command, { type: "subscribe" | "reconcile" }>, nowMs: number): void {
    const { relay } = command;
    this.requests += 1;
    this.lastRequestMs = nowMs;
    if (nowMs < seen.askNotBeforeMs) this.#broken(4, `${relay} asked during its rate-limit pause`, nowMs);
    if (command.type === "reconcile") seen.sessions.add(command.session);
    else if (command.subscription.startsWith("l")) seen.live.set(command.subscription, command.filters.length);
    else seen.history.add(command.subscription);
    const liveFilters = [...seen.live.values()].reduce((sum, filters) => sum + filters, 0);
    if (liveFilters > 73) this.#broken(3, `${relay} has ${liveFilters} live filters`, nowMs);
    if (seen.history.size > 4) this.#broken(3, `${relay} has ${seen.history.size} history subscriptions`, nowMs);
    if (seen.sessions.size > 1) this.#broken(3, `${relay} has ${seen.sessions.size} negentropy sessions`, nowMs);
    if (seen.sessions.size > 0 && seen.history.size > 0)
      this.#broken(3, `${relay} has a session beside history subscriptions`, nowMs);
  }
}
