// The domains we talk to: throttle, queue and metric label of each. Forgets idle domains. purgatory.md "Hunting", Domain queue and Throttle.

import type { Emit, FetchId, GaugeName, HuntConfig, JobKind } from "./messages.js";

export interface Domain {
  readonly name: string;
  readonly label: string;
  readonly throttle: DomainThrottle;
  readonly queue: DomainQueue;
  /** Fetches that hold a place here and wait for the rate window before their next connection, in order. */
  readonly connecting: FetchId[];
  /** Fetches that a redirect brings here and that wait for a place, in order. */
  readonly entering: FetchId[];
  /** They and the queue take turns: redirects must not be a way past those who wait. */
  isTurnOfEntering: boolean;
  /** The moment its rate window frees up, when somebody waits for it. */
  wakeAtMs: number | undefined;
  /** What the gauges last said of it. */
  reported: { inFlight: number; queued: number };
}

export const isWaitedFor = ({ queue, connecting, entering }: Domain): boolean =>
  queue.size > 0 || connecting.length > 0 || entering.length > 0;

/** Domains kept before idle ones are looked for. */
const sweepAbove = 1_000;

export class Domains {
  readonly #config: HuntConfig;
  readonly #emit: Emit;
  readonly #domains = new Map<string, Domain>();
  readonly #labels = new Set<string>();
  readonly #sums = new Map<string, number>();
  #sweepAt = sweepAbove;

  constructor(config: HuntConfig, emit: Emit) {
    this.#config = config;
    this.#emit = emit;
  }

  get size(): number {
    return this.#domains.size;
  }

  get(name: string, nowMs: number): Domain {
    const known = this.#domains.get(name);
    if (known) return known;
    if (this.#domains.size >= this.#sweepAt) this.#sweep(nowMs);
    const limits = () => domainLimits(this.#config, name);
    const domain: Domain = {
      name,
      label: this.#labelOf(name),
      throttle: new DomainThrottle(limits, this.#config.windowMs),
      queue: new DomainQueue(),
      connecting: [],
      entering: [],
      isTurnOfEntering: true,
      wakeAtMs: undefined,
      reported: { inFlight: 0, queued: 0 },
    };
    this.#domains.set(name, domain);
    return domain;
  }

  /** Brings the gauges up to date with what changed at this domain; domains that share a label add up. */
  report(domain: Domain): void {
    const now = { inFlight: domain.throttle.inFlight, queued: domain.queue.size };
    this.#move("purgatory_domain_in_flight", domain.label, now.inFlight - domain.reported.inFlight);
    this.#move("purgatory_domain_queued", domain.label, now.queued - domain.reported.queued);
    domain.reported = now;
  }

  #move(metric: GaugeName, label: string, by: number): void {
    if (by === 0) return;
    const key = `${metric} ${label}`;
    const value = (this.#sums.get(key) ?? 0) + by;
    this.#sums.set(key, value);
    this.#emit({ type: "gauge", metric, labels: { domain: label }, value });
  }

  /** Strangers choose domain names: a label for each would let them fill the metrics' memory. */
  #labelOf(name: string): string {
    if (this.#labels.has(name)) return name;
    if (this.#labels.size >= this.#config.metricsMaxDomainLabels) return "other";
    this.#labels.add(name);
    return name;
  }

  #sweep(nowMs: number): void {
    for (const [name, domain] of this.#domains) {
      if (!isWaitedFor(domain) && domain.throttle.isIdle(nowMs)) this.#domains.delete(name);
    }
    this.#sweepAt = Math.max(sweepAbove, 2 * this.#domains.size);
  }
}

/** `undefined`: nothing left to try here. `"not-now"`: keeps its place. */
type Pick = (key: string, tried: ReadonlySet<string>) => string | "not-now" | undefined;

interface Picked {
  readonly key: string;
  readonly url: string;
}

const otherKind = (kind: JobKind): JobKind => (kind === "repository" ? "pull-request" : "repository");

/**
 * Who waits at a throttled domain: round-robin over jobs, one URL a turn. Repositories and pull requests stand in two
 * lines that take turns, so that strangers' pull requests cannot crowd out repositories.
 */
class DomainQueue {
  /** Job → URLs of this domain it has tried since it joined. A Map's order is the line's order. */
  readonly #lines: Readonly<Record<JobKind, Map<string, Set<string>>>> = {
    repository: new Map(),
    "pull-request": new Map(),
  };
  #turn: JobKind = "repository";

  /** Jobs of this kind that wait here. */
  waiting(kind: JobKind): number {
    return this.#lines[kind].size;
  }

  get size(): number {
    return this.#lines.repository.size + this.#lines["pull-request"].size;
  }

  /** Joins at the end. Who waits already keeps place and memory. */
  join(kind: JobKind, key: string, tried: Iterable<string>): void {
    if (!this.#lines[kind].has(key)) this.#lines[kind].set(key, new Set(tried));
  }

  /** That URL may have more than when it was tried. */
  tryAgain(kind: JobKind, key: string, url: string): void {
    this.#lines[kind].get(key)?.delete(url);
  }

  leave(kind: JobKind, key: string): boolean {
    return this.#lines[kind].delete(key);
  }

  /** A new state: what was tried may have it now. */
  forgetTried(kind: JobKind, key: string): void {
    this.#lines[kind].get(key)?.clear();
  }

  /** The next job and URL of the kinds that may start; jobs with nothing left leave and are named to `left`. */
  next(mayStart: (kind: JobKind) => boolean, pick: Pick, left: (key: string) => void): Picked | undefined {
    for (const kind of [this.#turn, otherKind(this.#turn)]) {
      const picked = mayStart(kind) ? this.#nextOf(kind, pick, left) : undefined;
      if (!picked) continue;
      this.#turn = otherKind(kind);
      return picked;
    }
    return undefined;
  }

  #nextOf(kind: JobKind, pick: Pick, left: (key: string) => void): Picked | undefined {
    const line = this.#lines[kind];
    for (const [key, tried] of line) {
      const url = pick(key, tried);
      if (url === "not-now") continue;
      line.delete(key);
      if (url === undefined) {
        left(key);
        continue;
      }
      tried.add(url);
      line.set(key, tried);
      return { key, url };
    }
    return undefined;
  }
}

export interface DomainLimits {
  /** Fetches in flight. */
  readonly concurrent: number;
  /** Connections started in any window. */
  readonly rate: number;
}

export function domainLimits(config: HuntConfig, domain: string): DomainLimits {
  const override = config.gitDomainOverrides.findLast(({ host }) => host === domain);
  return override
    ? { concurrent: override.concurrent, rate: override.startsPerMinute }
    : { concurrent: config.gitDomainConcurrent, rate: config.gitDomainRate };
}

/**
 * One domain's limits: fetches in flight, and connections started in any window of a minute. Counts; decides nothing
 * else.
 */
export class DomainThrottle {
  readonly #limits: () => DomainLimits;
  readonly #windowMs: number;
  /** Ascending; at most the highest `rate` there was long, because nothing starts beyond it. */
  #startsMs: number[] = [];
  #inFlight = 0;

  constructor(limits: () => DomainLimits, windowMs: number) {
    this.#limits = limits;
    this.#windowMs = windowMs;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  hasSlot(): boolean {
    return this.#inFlight < this.#limits().concurrent;
  }

  hasRate(nowMs: number): boolean {
    this.#forgetOld(nowMs);
    return this.#startsMs.length < this.#limits().rate;
  }

  hasCapacity(nowMs: number): boolean {
    return this.hasSlot() && this.hasRate(nowMs);
  }

  /** When the rate window lets the next connection in; undefined when it does now. */
  rateFreesAtMs(nowMs: number): number | undefined {
    if (this.hasRate(nowMs)) return undefined;
    const oldest = this.#startsMs[this.#startsMs.length - this.#limits().rate];
    return oldest === undefined ? undefined : oldest + this.#windowMs;
  }

  /** A fetch begins: it holds a place until `finish`, and its first connection counts. */
  start(nowMs: number): void {
    this.#inFlight++;
    this.connect(nowMs);
  }

  /** A further connection of a fetch that holds a place. */
  connect(nowMs: number): void {
    this.#startsMs.push(nowMs);
  }

  finish(): void {
    if (this.#inFlight === 0) throw new Error("a fetch finished that never started");
    this.#inFlight--;
  }

  isIdle(nowMs: number): boolean {
    this.#forgetOld(nowMs);
    return this.#inFlight === 0 && this.#startsMs.length === 0;
  }

  #forgetOld(nowMs: number): void {
    const firstInside = this.#startsMs.findIndex((startMs) => startMs > nowMs - this.#windowMs);
    this.#startsMs = firstInside < 0 ? [] : this.#startsMs.slice(firstInside);
  }
}
