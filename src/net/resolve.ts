// Names to addresses. A resolver is an argument everywhere, so that tests can answer for the network.
// It tells "this name does not exist" (the name's fault) from "no answer now" (perhaps ours): health rules differ.

import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import type { Clock } from "../base/clock.js";

export type Resolution =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly code: "dns-missing" | "dns-temporary"; readonly message: string };

export type Resolve = (hostname: string) => Promise<Resolution>;

const hostsPath = "/etc/hosts";
const queryMs = 2_000;

/**
 * The system's name servers and its hosts file, with a time limit of our own. Not getaddrinfo: that waits in one of the few
 * threads that every file operation needs as well, and a name server that is silent would hold them all (threats.md row 49).
 */
export function systemResolver(clock: Clock, timeoutMs = 5_000, servers?: readonly string[]): Resolve {
  return (hostname) =>
    new Promise((settle) => {
      const resolver = new Resolver({ timeout: queryMs, tries: 2 });
      if (servers) resolver.setServers(servers);
      const cancel = clock.after(timeoutMs, () => {
        settle({ ok: false, code: "dns-temporary", message: `no answer for ${hostname} within ${timeoutMs} ms` });
        resolver.cancel();
      });
      void addressesOf(hostname, resolver).then((resolution) => {
        cancel();
        settle(resolution);
      });
    });
}

async function addressesOf(hostname: string, resolver: Resolver): Promise<Resolution> {
  if (isIP(hostname) !== 0) return { ok: true, addresses: [hostname] };
  const name = hostname.toLowerCase().replace(/\.$/, "");
  const written = hostsEntries(await readFile(hostsPath, "utf8").catch(() => ""), name);
  if (written.length > 0) return { ok: true, addresses: written };
  // Never asked of the network (RFC 6761).
  if (name === "localhost" || name.endsWith(".localhost")) return { ok: true, addresses: ["127.0.0.1", "::1"] };
  const answers = await Promise.allSettled([resolver.resolve6(name), resolver.resolve4(name)]);
  const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  if (addresses.length > 0) return { ok: true, addresses };
  const codes = answers.map((answer) => (answer.status === "rejected" ? String(answer.reason?.code) : "ENODATA"));
  const isMissing = codes.every((code) => dnsFailureCode(code) === "dns-missing");
  return { ok: false, code: isMissing ? "dns-missing" : "dns-temporary", message: `${hostname}: ${codes.join(", ")}` };
}

/** The addresses a hosts file has for a name. */
export function hostsEntries(text: string, name: string): string[] {
  const found: string[] = [];
  for (const line of text.split("\n")) {
    const [address = "", ...names] = (line.split("#")[0] ?? "").trim().split(/\s+/);
    if (isIP(address) !== 0 && names.some((one) => one.toLowerCase() === name)) found.push(address);
  }
  return found;
}

/** A name that is not there, or has no address; all else may pass. */
export const dnsFailureCode = (code: string | undefined): "dns-missing" | "dns-temporary" =>
  code === "ENOTFOUND" || code === "ENODATA" ? "dns-missing" : "dns-temporary";
