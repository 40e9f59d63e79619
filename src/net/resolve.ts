// Names to addresses. A resolver is an argument everywhere, so that tests can answer for the network.
// It tells "this name does not exist" (the name's fault) from "no answer now" (perhaps ours): health rules differ.

import { lookup } from "node:dns/promises";
import type { Clock } from "../base/clock.js";

export type Resolution =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly code: "dns-missing" | "dns-temporary"; readonly message: string };

export type Resolve = (hostname: string) => Promise<Resolution>;

/** The system's resolver (it knows /etc/hosts and container names), with a time limit of our own. */
export function systemResolver(clock: Clock, timeoutMs = 5_000): Resolve {
  return (hostname) =>
    new Promise((settle) => {
      const cancel = clock.after(timeoutMs, () =>
        settle({ ok: false, code: "dns-temporary", message: `no answer for ${hostname} within ${timeoutMs} ms` }),
      );
      lookup(hostname, { all: true, verbatim: true }).then(
        (found) => {
          cancel();
          settle({ ok: true, addresses: found.map((entry) => entry.address) });
        },
        (error: NodeJS.ErrnoException) => {
          cancel();
          settle({ ok: false, code: dnsFailureCode(error.code), message: `${hostname}: ${error.code ?? "no answer"}` });
        },
      );
    });
}

/** getaddrinfo says ENOTFOUND for a name that is not there and for one without an address; all else may pass. */
export const dnsFailureCode = (code: string | undefined): "dns-missing" | "dns-temporary" =>
  code === "ENOTFOUND" || code === "ENODATA" ? "dns-missing" : "dns-temporary";
