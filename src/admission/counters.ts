// What one address did in the last hour: the only memory admission has between events. Bounded: `maxAddresses`
// addresses, and never more than `limit` entries for one. Counting the same event twice counts once, because a
// transaction may be run again.

import { ipGroup } from "../base/budget/address-group.js";

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
