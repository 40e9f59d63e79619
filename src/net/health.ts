// The health of other hosts, one table for relays and git servers (event-sync.md "Health"): how long to wait after a
// failure, which are dead, rate-limited or paused, and which are naughty, because they are wrong in a lasting way.
// Pure: time is an argument, monotonic milliseconds throughout; the owner keeps the naughty list over restarts.

import type { Config } from "../config/config.js";

const secondMs = 1_000;
const hourMs = 3_600_000;
/** DNS failures of other hosts within this time say that it is our resolver. */
const ownResolverMs = 60_000;
const maxDnsFailures = 200;

type NaughtyRules = Pick<Config, Extract<keyof Config, `naughty${string}`>>;

interface NaughtyEntry<Kind> {
  readonly place: string;
  readonly kind: Kind;
  readonly untilMs: number;
}

interface Lasting<Kind> {
  readonly kind: Kind;
  /** In a row. */
  count: number;
  sinceMs: number;
  /** 0: not naughty, or not yet. */
  untilMs: number;
}

interface DnsFailure {
  readonly place: string;
  readonly host: string;
  readonly atMs: number;
  /** It counts against its place. */
  charged: boolean;
}

/**
 * Places that failed in one lasting way, often enough and for long enough, are left alone for a while, then begin with a
 * clean sheet. An answer, or a failure of any other kind, starts the count again. A place is what the failure is a
 * property of: a relay, a host name, a port of a host.
 */
export class NaughtyList<Kind extends string> {
  readonly #places = new Map<string, Lasting<Kind>>();
  #dnsFailures: DnsFailure[] = [];

  /** `lasting`: failures that do not pass by themselves. `maxPlaces` are remembered; the oldest make room. */
  constructor(
    private readonly rules: NaughtyRules,
    private readonly lasting: readonly Kind[],
    private readonly noSuchName: Kind,
    private readonly maxPlaces = 10_000,
  ) {}

  isNaughty(place: string, nowMs: number): boolean {
    return this.untilMs(place) > nowMs;
  }

  /** When the last ban ends, or ended; 0 without one. */
  untilMs(place: string): number {
    return this.#places.get(place)?.untilMs ?? 0;
  }

  /** Any failure at a place; the answer is the ban it caused, if it did. */
  failed(place: string, host: string, failure: string, nowMs: number): NaughtyEntry<Kind> | undefined {
    if (this.isNaughty(place, nowMs)) return undefined;
    const kind = this.lasting.find((one) => one === failure);
    const isDns = failure === this.noSuchName || failure === "dns-temporary";
    const isOurs = isDns && this.#isOurResolver(place, host, kind !== undefined, nowMs);
    if (kind === undefined) {
      this.#places.delete(place);
      return undefined;
    }
    const before = this.#places.get(place);
    const isMore = before?.kind === kind && before.untilMs === 0;
    const row = isMore ? before : { kind, count: 0, sinceMs: nowMs, untilMs: 0 };
    this.#remember(place, row);
    if (isOurs) return undefined;
    if (row.count === 0) row.sinceMs = nowMs;
    row.count += 1;
    const { naughtyAfterFailures, naughtyAfterSecs, naughtyListExpirationHours } = this.rules;
    if (row.count < naughtyAfterFailures || nowMs - row.sinceMs < naughtyAfterSecs * secondMs) return undefined;
    row.untilMs = nowMs + naughtyListExpirationHours * hourMs;
    return { place, kind, untilMs: row.untilMs };
  }

  /** The place answered: what was wrong is wrong no longer. A ban in force stays. */
  worked(place: string): void {
    if (this.untilMs(place) === 0) this.#places.delete(place);
  }

  /** Nobody failed while we stood still. */
  stoodStill(forMs: number): void {
    for (const row of this.#places.values()) row.sinceMs += forMs;
  }

  /** What was kept over a restart; never longer than a ban lasts, should the wall clock have gone back. */
  restore({ place, kind, untilMs }: NaughtyEntry<Kind>, nowMs: number): void {
    const latestMs = nowMs + this.rules.naughtyListExpirationHours * hourMs;
    this.#remember(place, { kind, count: 0, sinceMs: nowMs, untilMs: Math.min(untilMs, latestMs) });
  }

  /** False: nothing was held against it. */
  forgive(place: string): boolean {
    return this.#places.delete(place);
  }

  entries(nowMs: number): NaughtyEntry<Kind>[] {
    return [...this.#places].flatMap(([place, { kind, untilMs }]) =>
      untilMs > nowMs ? [{ place, kind, untilMs }] : [],
    );
  }

  #remember(place: string, row: Lasting<Kind>): void {
    this.#places.delete(place);
    this.#places.set(place, row);
    if (this.#places.size <= this.maxPlaces) return;
    const oldest = this.#places.keys().next().value;
    if (oldest !== undefined) this.#places.delete(oldest);
  }

  /** Also takes back what others were charged with in this minute: they suffered from the same resolver. */
  #isOurResolver(place: string, host: string, isLasting: boolean, nowMs: number): boolean {
    const sinceMs = nowMs - ownResolverMs;
    this.#dnsFailures = this.#dnsFailures.filter(({ atMs }) => atMs > sinceMs).slice(-maxDnsFailures);
    const others = this.#dnsFailures.filter((past) => past.host !== host);
    for (const other of others) {
      const row = this.#places.get(other.place);
      if (other.charged && row?.kind === this.noSuchName && row.untilMs === 0 && row.count > 0) row.count -= 1;
      other.charged = false;
    }
    const isOurs = others.length > 0;
    this.#dnsFailures.push({ place, host, atMs: nowMs, charged: isLasting && !isOurs });
    return isOurs;
  }
}

class Health {
  /** In a row, for what is shown and for `dead`: a relay that is live with its catch-up done has none. */
  failures = 0;
  /** The same for the wait before the next dial: cleared only by a link that lasted. */
  backoffs = 0;
  firstFailureMs = 0;
  nextDialMs = 0;
  dead = false;
  /** It gave its place to another and takes nobody's before this. */
  claimNotBeforeMs = 0;
  /** No new request before this (rate limit). */
  askAgainMs = 0;
  /** Not dialled before this: over its budget, or mostly refused. */
  pausedUntilMs = 0;
  /** The last dial or link that ended badly, in our words; kept when things are well again. */
  lastFailure: { readonly kind: string; readonly wallMs: number } | undefined;
}

export type HealthStatus = 1 | 2 | 3 | 4;

type BackoffRules = Pick<
  Config,
  "syncBaseBackoffSecs" | "syncMaxBackoffSecs" | "syncDeadAfterHours" | "syncDeadRetryHours" | "syncStableLinkSecs"
>;

const lowestJitter = 0.8;
const highestJitter = 1.2;
const maxRecords = 5_000;

/**
 * When a relay may be dialled and asked. Kept by the relay's key, so that a relay that is followed no more and then
 * again does not escape its back-off.
 */
export class HostHealth<Kind extends string> {
  readonly #records = new Map<string, Health>();

  constructor(
    private readonly rules: BackoffRules,
    readonly naughty: NaughtyList<Kind>,
  ) {}

  of(relay: string): Health {
    const health = this.#records.get(relay) ?? new Health();
    this.#records.set(relay, health);
    return health;
  }

  restoreNaughty(entry: NaughtyEntry<Kind>, nowMs: number): void {
    this.of(entry.place);
    this.naughty.restore(entry, nowMs);
  }

  /** One more failed dial or lost link. Returns the wait in milliseconds, and whether the relay has just died. */
  fail(relay: string, nowMs: number, random: () => number): { waitMs: number; died: boolean } {
    const { syncDeadAfterHours, syncDeadRetryHours, syncBaseBackoffSecs, syncMaxBackoffSecs } = this.rules;
    const health = this.of(relay);
    if (health.failures === 0) health.firstFailureMs = nowMs;
    health.failures += 1;
    health.backoffs += 1;
    const died = !health.dead && nowMs - health.firstFailureMs >= syncDeadAfterHours * hourMs;
    if (died) health.dead = true;
    const backoffSecs = Math.min(syncBaseBackoffSecs * 2 ** Math.min(health.backoffs - 1, 30), syncMaxBackoffSecs);
    const jitter = lowestJitter + random() * (highestJitter - lowestJitter);
    const waitMs = (health.dead ? syncDeadRetryHours * hourMs : backoffSecs * secondMs) * jitter;
    health.nextDialMs = nowMs + waitMs;
    return { waitMs, died };
  }

  /** A link that lasted starts the count anew. */
  linkEnded(relay: string, lastedMs: number): void {
    if (lastedMs >= this.rules.syncStableLinkSecs * secondMs) this.#reset(relay);
  }

  /** Live with its catch-up done. */
  succeed(relay: string): void {
    Object.assign(this.of(relay), { failures: 0, dead: false });
  }

  #reset(relay: string): void {
    this.succeed(relay);
    this.of(relay).backoffs = 0;
  }

  /** Nobody failed while we stood still. */
  stoodStill(forMs: number): void {
    for (const health of this.#records.values()) health.firstFailureMs += forMs;
    this.naughty.stoodStill(forMs);
  }

  /** Nothing of its past stands against a dial or a question now. */
  forgive(relay: string): void {
    this.#reset(relay);
    Object.assign(this.of(relay), { nextDialMs: 0, askAgainMs: 0, pausedUntilMs: 0 });
    this.naughty.forgive(relay);
  }

  /** The next allowed dial. */
  dialAtMs(relay: string, nowMs: number): number {
    const health = this.#records.get(relay);
    return Math.max(health?.nextDialMs ?? nowMs, health?.pausedUntilMs ?? 0, this.naughty.untilMs(relay));
  }

  /** `linkMs`: how long it has been connected; undefined when it is not. */
  status(relay: string, nowMs: number, linkMs: number | undefined): HealthStatus {
    const health = this.#records.get(relay);
    if (!health) return 1;
    if (health.askAgainMs > nowMs) return 4;
    if (health.dead && linkMs === undefined) return 3;
    return health.failures > 0 && (linkMs ?? 0) < this.rules.syncStableLinkSecs * secondMs ? 2 : 1;
  }

  /** Dead or naughty. */
  isHopeless(relay: string, nowMs: number): boolean {
    return this.#records.get(relay)?.dead === true || this.naughty.isNaughty(relay, nowMs);
  }

  /** Whether another may give way to it. */
  mayClaim(relay: string, nowMs: number): boolean {
    return !this.isHopeless(relay, nowMs) && (this.#records.get(relay)?.claimNotBeforeMs ?? 0) <= nowMs;
  }

  /** Drops what is over for relays nobody tracks. */
  tidy(tracked: (relay: string) => boolean, nowMs: number): void {
    for (const [relay, health] of this.#records) {
      if (tracked(relay)) continue;
      const isOver = Math.max(this.dialAtMs(relay, nowMs), health.askAgainMs, health.claimNotBeforeMs) <= nowMs;
      if (!isOver && this.#records.size <= maxRecords) continue;
      this.#records.delete(relay);
      this.naughty.forgive(relay);
    }
  }
}
