// All domains we talk to: throttle, queue and metric label of each. Forgets idle ones.

import type { DomainLimits, HuntConfig } from "./config.js";
import { DomainQueue } from "./domain-queue.js";
import type { Emit, FetchId, GaugeName } from "./messages.js";
import { DomainThrottle } from "./throttle.js";

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
  #config: HuntConfig;
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
    const domain: Domain = {
      name,
      label: this.#labelOf(name),
      throttle: new DomainThrottle(this.#limitsOf(name), this.#config.windowMs),
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

  follow(config: HuntConfig): void {
    this.#config = config;
    for (const { name, throttle } of this.#domains.values()) throttle.limits = this.#limitsOf(name);
  }

  #limitsOf(name: string): DomainLimits {
    return this.#config.overrides.get(name) ?? this.#config.domain;
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
    if (this.#labels.size >= this.#config.maxDomainLabels) return "other";
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
