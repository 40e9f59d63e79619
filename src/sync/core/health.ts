// When a relay may be dialled and asked: back-off, dead, rate-limited, naughty (spec "Health"). Kept by key, so that
// a relay that leaves targets and comes back does not escape its back-off.

import { hourMs, type SyncConfig, secondMs } from "./config.js";
import type { ConnectFailure, NaughtyKind, Random, RelayKey, Time } from "./messages.js";

class Health {
  /** In a row, for what is shown and for `dead`: a relay that is live with its catch-up done has none. */
  failures = 0;
  /** The same for the wait before the next dial: cleared only by a link that lasted. */
  backoffs = 0;
  firstFailureMs = 0;
  nextDialMs = 0;
  dead = false;
  /** It gave its place to another and takes nobody's before this (targets.ts). */
  claimNotBeforeMs = 0;
  /** No new request before this (rate limit). */
  askAgainMs = 0;
  /** Not dialled before this: over its budget, or mostly refused. */
  pausedUntilMs = 0;
  naughtyUntilWallMs = 0;
  naughtyKind: NaughtyKind | undefined;
  lastingKind: NaughtyKind | undefined;
  lastingCount = 0;
  lastingSinceMs = 0;
  /** The last dial or link that ended badly, in our words; kept when things are well again. */
  lastFailure: { readonly kind: string; readonly wallMs: number } | undefined;
}

export type HealthStatus = 1 | 2 | 3 | 4;

const lasting: readonly ConnectFailure[] = ["dns-not-found", "certificate", "not-websocket"];

export class HealthBook {
  readonly #records = new Map<RelayKey, Health>();
  /** DNS failures of the last minute: several hosts at once means that our resolver is at fault. */
  #recentDns: { readonly relay: RelayKey; readonly host: string; readonly atMs: number; takenBack: boolean }[] = [];

  constructor(readonly config: SyncConfig) {}

  of(relay: RelayKey): Health {
    const health = this.#records.get(relay) ?? new Health();
    this.#records.set(relay, health);
    return health;
  }

  /** Relays in the naughty list, by kind. */
  naughty(time: Time): Record<NaughtyKind, number> {
    const counts = { "dns-not-found": 0, certificate: 0, "not-websocket": 0 };
    for (const health of this.#records.values()) {
      if (health.naughtyKind && health.naughtyUntilWallMs > time.wallMs) counts[health.naughtyKind] += 1;
    }
    return counts;
  }

  setNaughty(relay: RelayKey, kind: NaughtyKind, untilWallMs: number): void {
    Object.assign(this.of(relay), { naughtyKind: kind, naughtyUntilWallMs: untilWallMs });
  }

  /** One more failed dial or lost link. Returns the wait in milliseconds, and whether the relay has just died. */
  fail(relay: RelayKey, time: Time, random: Random): { waitMs: number; died: boolean } {
    const { config } = this;
    const health = this.of(relay);
    if (health.failures === 0) health.firstFailureMs = time.monotonicMs;
    health.failures += 1;
    health.backoffs += 1;
    const died = !health.dead && time.monotonicMs - health.firstFailureMs >= config.syncDeadAfterHours * hourMs;
    if (died) health.dead = true;
    const backoff = Math.min(
      config.syncBaseBackoffSecs * secondMs * 2 ** Math.min(health.backoffs - 1, 30),
      config.syncMaxBackoffSecs * secondMs,
    );
    const jitter = config.jitterLow + random() * (config.jitterHigh - config.jitterLow);
    const waitMs = (health.dead ? config.syncDeadRetryHours * hourMs : backoff) * jitter;
    health.nextDialMs = time.monotonicMs + waitMs;
    return { waitMs, died };
  }

  /** A link that lasted starts the count anew. */
  linkEnded(relay: RelayKey, lastedMs: number): void {
    if (lastedMs >= this.config.syncStableLinkSecs * secondMs) this.reset(relay);
  }

  /** Live with its catch-up done. */
  succeed(relay: RelayKey): void {
    Object.assign(this.of(relay), { failures: 0, dead: false, lastingCount: 0, lastingKind: undefined });
  }

  reset(relay: RelayKey): void {
    this.succeed(relay);
    this.of(relay).backoffs = 0;
  }

  /** Nobody failed while we stood still. */
  stoodStill(forMs: number): void {
    for (const health of this.#records.values()) {
      health.firstFailureMs += forMs;
      health.lastingSinceMs += forMs;
    }
  }

  /** Nothing of its past stands against a dial or a question now. */
  forgive(relay: RelayKey): void {
    this.reset(relay);
    Object.assign(this.of(relay), { nextDialMs: 0, askAgainMs: 0, pausedUntilMs: 0, naughtyKind: undefined });
  }

  /** Counts failures that will not pass by themselves. Returns the kind when the relay has become naughty. */
  noteKind(relay: RelayKey, host: string, kind: ConnectFailure, time: Time): NaughtyKind | undefined {
    const { config } = this;
    const health = this.of(relay);
    if (!lasting.includes(kind)) {
      health.lastingCount = 0;
      health.lastingKind = undefined;
      if (kind === "dns-temporary") this.#noteDns(relay, host, time);
      return undefined;
    }
    const found = kind as NaughtyKind;
    if (health.lastingKind !== found) {
      health.lastingKind = found;
      health.lastingCount = 0;
    }
    if (found === "dns-not-found" && this.#noteDns(relay, host, time)) return undefined;
    if (health.lastingCount === 0) health.lastingSinceMs = time.monotonicMs;
    health.lastingCount += 1;
    if (health.lastingCount < config.naughtyAfterFailures) return undefined;
    if (time.monotonicMs - health.lastingSinceMs < config.naughtyAfterSecs * secondMs) return undefined;
    health.naughtyKind = found;
    health.naughtyUntilWallMs = time.wallMs + config.naughtyListExpirationHours * hourMs;
    health.lastingCount = 0;
    return found;
  }

  /** True when other hosts failed DNS within a minute; their failure is then taken back too. */
  #noteDns(relay: RelayKey, host: string, time: Time): boolean {
    const from = time.monotonicMs - this.config.sharedDnsTroubleMs;
    this.#recentDns = this.#recentDns.filter((failure) => failure.atMs > from).slice(-200);
    const others = this.#recentDns.filter((failure) => failure.host !== host);
    for (const other of others) {
      if (other.takenBack) continue;
      other.takenBack = true;
      const health = this.of(other.relay);
      if (health.lastingKind === "dns-not-found" && health.lastingCount > 0) health.lastingCount -= 1;
    }
    this.#recentDns.push({ relay, host, atMs: time.monotonicMs, takenBack: others.length > 0 });
    return others.length > 0;
  }

  /** Monotonic time of the next allowed dial. */
  dialAtMs(relay: RelayKey, time: Time): number {
    const health = this.#records.get(relay);
    if (!health) return time.monotonicMs;
    const naughtyMs = health.naughtyKind ? time.monotonicMs + this.#naughtyForMs(health, time) : 0;
    return Math.max(health.nextDialMs, health.pausedUntilMs, naughtyMs);
  }

  /** Never longer than it may last, should the wall clock have gone back. */
  #naughtyForMs({ naughtyUntilWallMs }: Health, time: Time): number {
    return Math.min(naughtyUntilWallMs - time.wallMs, this.config.naughtyListExpirationHours * hourMs);
  }

  /** `linkMs`: how long it has been connected; undefined when it is not. */
  status(relay: RelayKey, time: Time, linkMs: number | undefined): HealthStatus {
    const health = this.#records.get(relay);
    if (!health) return 1;
    if (health.askAgainMs > time.monotonicMs) return 4;
    if (health.dead && linkMs === undefined) return 3;
    return health.failures > 0 && (linkMs ?? 0) < this.config.syncStableLinkSecs * secondMs ? 2 : 1;
  }

  /** Dead or naughty. */
  isHopeless(relay: RelayKey, time: Time): boolean {
    const health = this.#records.get(relay);
    if (!health) return false;
    return health.dead || (health.naughtyKind !== undefined && health.naughtyUntilWallMs > time.wallMs);
  }

  /** Whether another may give way to it. */
  mayClaim(relay: RelayKey, time: Time): boolean {
    return !this.isHopeless(relay, time) && (this.#records.get(relay)?.claimNotBeforeMs ?? 0) <= time.monotonicMs;
  }

  /** Drops what is over for relays nobody tracks. */
  tidy(tracked: (relay: RelayKey) => boolean, time: Time): void {
    for (const [relay, health] of this.#records) {
      const over =
        Math.max(this.dialAtMs(relay, time), health.askAgainMs, health.claimNotBeforeMs) <= time.monotonicMs &&
        !tracked(relay);
      if (over || (this.#records.size > this.config.maxHealthRecords && !tracked(relay))) this.#records.delete(relay);
    }
  }
}
