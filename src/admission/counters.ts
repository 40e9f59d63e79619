// What one address did in the last hour: the only memory admission has between events. Bounded: `maxAddresses`
// addresses, and never more than `limit` entries for one. Counting the same event twice counts once, because a
// transaction may be run again.

import { isIPv6 } from "node:net";

export interface HourlyCounter {
  /** False when this address had its share; otherwise the event, or what else the id names, is counted. */
  allows(ip: string, id: string, nowSeconds: number, limit: number): boolean;
}

const hourSeconds = 3_600;

/** One household has a whole /64 of IPv6 addresses. */
export function addressBucket(ip: string): string {
  if (!isIPv6(ip)) return ip;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip);
  if (mapped?.[1] !== undefined) return mapped[1];
  const [head = "", tail] = ip.toLowerCase().replace(/%.*$/, "").split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const gap = tail === undefined ? [] : Array<string>(Math.max(0, 8 - left.length - right.length)).fill("0");
  const groups = [...left, ...gap, ...right].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ""));
  return `${groups.join(":")}::/64`;
}

export function hourlyCounter(maxAddresses = 10_000): HourlyCounter {
  const byAddress = new Map<string, Map<string, number>>();
  return {
    allows(ip, id, nowSeconds, limit) {
      const bucket = addressBucket(ip);
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
