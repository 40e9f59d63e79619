// Connects sockets to the checked addresses and to no others. The name stays in SNI, certificate check and Host header.

import { isIPv6, type LookupFunction } from "node:net";
import type { GuardedUrl } from "./guard.js";

interface PinnedConnection {
  readonly lookup: LookupFunction;
  /** How long one of several addresses may take before the next is tried. Node's 250 ms is too short for far hosts. */
  readonly autoSelectFamilyAttemptTimeout: number;
}

/** Socket options that answer every look-up with the pinned addresses, whatever name is asked and whatever DNS says by now. */
export function pinnedConnection(url: GuardedUrl): PinnedConnection {
  const found = url.addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return {
    autoSelectFamilyAttemptTimeout: 2_000,
    lookup(_hostname, options, callback) {
      // Callers count on an asynchronous answer.
      process.nextTick(() => {
        const first = found[0];
        if (!first) callback(new Error("no pinned address"), "");
        else if (options.all) callback(null, found);
        else callback(null, first.address, first.family);
      });
    },
  };
}
