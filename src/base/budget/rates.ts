// The one budget: whatever a stranger can send is bounded in bytes held, in places taken and in how often, by address
// and in all (threats.md, rows 32 to 55). Three files, no I/O, time is an argument:
//   bytes.ts          ByteBudget: bytes held now; who holds most gives way
//   turns.ts          Turns: places taken now, with a bounded fair queue and places kept for others
//   rates.ts          TokenBucket, Rates: how often, how many bytes a day; ipGroup: which addresses count as one visitor
//
// How often, and how much a day: a bucket allows as many at once as a period allows, then as they grow back.
//
//   const pages = new Rates(() => ({ most: 240, periodMs: 60_000 }));
//   if (!pages.take(ipGroup(ip), clock.monotonicMs())) …refuse
//
// `Rates` keeps one bucket a key, and a bounded number of keys. Addresses are given as `ipGroup(ip)`. `hourlyCounter`
// counts things with ids instead, so that the same thing counts once.

import { isIPv4, isIPv6 } from "node:net";

export interface Rate {
  /** In one period, and at once after a quiet period. */
  readonly most: number;
  readonly periodMs: number;
}

export const perMinute = (most: number): Rate => ({ most, periodMs: 60_000 });
/** Bytes on their way: four seconds' worth may come at once. */
export const perSecond = (most: number): Rate => ({ most: most * 4, periodMs: 4_000 });
export const perDay = (most: number): Rate => ({ most, periodMs: 86_400_000 });

export class TokenBucket {
  #tokens: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.#tokens = rate.most;
    this.#atMs = nowMs;
  }

  /** All of it or nothing. An amount that is larger than the rate itself passes when the bucket is full. */
  take(rate: Rate, nowMs: number, amount = 1): boolean {
    this.#refill(rate, nowMs);
    if (this.#tokens < Math.min(amount, rate.most)) return false;
    this.#tokens -= amount;
    return true;
  }

  /** Takes it in any case, also what is not there yet. Answers how long to wait before the next; 0: not at all. */
  spend(rate: Rate, nowMs: number, amount: number): number {
    this.#refill(rate, nowMs);
    this.#tokens -= amount;
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens * rate.periodMs) / rate.most);
  }

  /** What was taken and not used. */
  give(amount: number): void {
    this.#tokens += amount;
  }

  /** When so much can be taken; 0: now. */
  waitMs(rate: Rate, nowMs: number, amount = 1): number {
    this.#refill(rate, nowMs);
    const missing = Math.min(amount, rate.most) - this.#tokens;
    return missing <= 0 ? 0 : Math.ceil((missing * rate.periodMs) / rate.most);
  }

  isFull(rate: Rate, nowMs: number): boolean {
    this.#refill(rate, nowMs);
    return this.#tokens >= rate.most;
  }

  #refill({ most, periodMs }: Rate, nowMs: number): void {
    this.#tokens = Math.min(most, this.#tokens + (Math.max(0, nowMs - this.#atMs) * most) / periodMs);
    this.#atMs = nowMs;
  }
}

export class Rates {
  readonly #buckets = new Map<string, TokenBucket>();

  constructor(
    readonly rate: () => Rate,
    readonly maxKeys = 10_000,
  ) {}

  take(key: string, nowMs: number, amount = 1): boolean {
    return this.#bucket(key, nowMs).take(this.rate(), nowMs, amount);
  }

  spend(key: string, nowMs: number, amount: number): number {
    return this.#bucket(key, nowMs).spend(this.rate(), nowMs, amount);
  }

  give(key: string, amount: number): void {
    this.#buckets.get(key)?.give(amount);
  }

  waitMs(key: string, nowMs: number, amount = 1): number {
    return this.#buckets.get(key)?.waitMs(this.rate(), nowMs, amount) ?? 0;
  }

  #bucket(key: string, nowMs: number): TokenBucket {
    const known = this.#buckets.get(key);
    if (known) return known;
    if (this.#buckets.size >= this.maxKeys) this.#forget(nowMs);
    const bucket = new TokenBucket(this.rate(), nowMs);
    this.#buckets.set(key, bucket);
    return bucket;
  }

  /** Who has nothing to be remembered for; if those are few, who came first: so that it is not done for each newcomer. */
  #forget(nowMs: number): void {
    const rate = this.rate();
    for (const [key, bucket] of this.#buckets) if (bucket.isFull(rate, nowMs)) this.#buckets.delete(key);
    for (const key of this.#buckets.keys()) {
      if (this.#buckets.size < this.maxKeys * 0.9) return;
      this.#buckets.delete(key);
    }
  }
}

/**
 * What one address did in the last hour. Bounded: `maxAddresses` addresses, and never more than `limit` entries for one.
 * The same event counts once, because a transaction may be run again.
 */
export interface HourlyCounter {
  /** False when this address had its share; otherwise the event, or what else the id names, is counted. */
  allows(ip: string, id: string, nowSeconds: number, limit: number): boolean;
}

const hourSeconds = 3_600;

export function hourlyCounter(maxAddresses = 10_000): HourlyCounter {
  const byAddress = new Map<string, Map<string, number>>();
  return {
    allows(ip, id, nowSeconds, limit) {
      const bucket = ipGroup(ip);
      const seen = byAddress.get(bucket) ?? new Map<string, number>();
      for (const [old, at] of seen) if (at <= nowSeconds - hourSeconds) seen.delete(old);
      if (!seen.has(id)) {
        if (seen.size >= limit) return false;
        seen.set(id, nowSeconds);
      }
      // Re-inserted at the end: the address that was quiet longest is the one forgotten.
      byAddress.delete(bucket);
      byAddress.set(bucket, seen);
      if (byAddress.size > maxAddresses) {
        const quietest = byAddress.keys().next().value;
        if (quietest !== undefined) byAddress.delete(quietest);
      }
      return true;
    },
  };
}

/**
 * Who counts as one visitor: an IPv4 address (`192.0.2.1`), or an IPv6 /64 (`2001:db8:0:1::/64`), because a household or a
 * server gets that many addresses at least. Anything else is one visitor under its own text.
 */
export function ipGroup(ip: string): string {
  if (isIPv4(ip) || !isIPv6(ip)) return ip;
  const words = ipv6Words(ip);
  const mapped = words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff;
  if (mapped) {
    const [high = 0, low = 0] = words.slice(6);
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
  }
  return `${words
    .slice(0, 4)
    .map((word) => word.toString(16))
    .join(":")}::/64`;
}

function ipv6Words(ip: string): number[] {
  const [address = ""] = ip.split("%");
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const text = dotted
    ? `${dotted[1]}${((Number(dotted[2]) << 8) | Number(dotted[3])).toString(16)}:${((Number(dotted[4]) << 8) | Number(dotted[5])).toString(16)}`
    : address;
  const [head = "", tail] = text.split("::");
  const words = (part: string) => (part === "" ? [] : part.split(":").map((word) => Number.parseInt(word, 16)));
  const front = words(head);
  if (tail === undefined) return front;
  const back = words(tail);
  return [...front, ...new Array<number>(Math.max(0, 8 - front.length - back.length)).fill(0), ...back];
}
