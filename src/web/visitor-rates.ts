// How often one address may ask for pages: a crawler must not make the server stand still for everybody else. Pages
// that start git are dearer than those that read the store.

import type { Clock } from "../base/clock.js";
import { ipGroup } from "../relay/ip-group.js";
import { TokenBucket } from "../relay/token-bucket.js";

export interface PageRates {
  readonly pagesPerMinute: number;
  readonly gitPagesPerMinute: number;
}

export const defaultPageRates: PageRates = { pagesPerMinute: 240, gitPagesPerMinute: 30 };

export const retryAfterSeconds = 10;
const maxVisitors = 10_000;

export class VisitorRates {
  readonly #pages = new Map<string, TokenBucket>();
  readonly #gitPages = new Map<string, TokenBucket>();

  constructor(
    readonly clock: Clock,
    readonly rates: PageRates = defaultPageRates,
  ) {}

  takePage(ip: string): boolean {
    return this.#take(this.#pages, ip, this.rates.pagesPerMinute);
  }

  takeGitPage(ip: string): boolean {
    return this.#take(this.#gitPages, ip, this.rates.gitPagesPerMinute);
  }

  #take(buckets: Map<string, TokenBucket>, ip: string, perMinute: number): boolean {
    const group = ipGroup(ip);
    const nowMs = this.clock.monotonicMs();
    let bucket = buckets.get(group);
    if (!bucket) {
      if (buckets.size >= maxVisitors) forget(buckets, perMinute, nowMs);
      bucket = new TokenBucket(perMinute, nowMs);
      buckets.set(group, bucket);
    }
    return bucket.take(perMinute, nowMs);
  }
}

/** Who has nothing to be remembered for; if that is nobody, who came first. */
function forget(buckets: Map<string, TokenBucket>, perMinute: number, nowMs: number): void {
  for (const [group, bucket] of buckets) if (bucket.isFull(perMinute, nowMs)) buckets.delete(group);
  for (const group of buckets.keys()) {
    if (buckets.size < maxVisitors) return;
    buckets.delete(group);
  }
}
