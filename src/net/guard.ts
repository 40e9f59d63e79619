// The outbound guard: the only maker of GuardedUrl, and everything that dials takes nothing else. threats.md rows 4, 5.
// A name is resolved once, every address it has is judged, and exactly those addresses are dialled: a second look-up
// with another answer (rebinding) never happens.

import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP, isIPv6, type LookupFunction } from "node:net";
import type { Brand } from "../base/brand.js";
import type { Clock } from "../base/clock.js";
import { addressKind, mayDial, type Reach } from "./address.js";

interface Checked {
  /** The URL in the parser's own spelling: what was judged is what is dialled. */
  readonly href: string;
  readonly scheme: "http" | "https" | "ws" | "wss";
  /** Lower case, without brackets. */
  readonly hostname: string;
  readonly port: number;
  /** At least one; all were judged. */
  readonly addresses: readonly string[];
}

export type GuardedUrl = Brand<Checked, "GuardedUrl">;

export type GuardRefusalCode =
  | "bad-url"
  | "bad-scheme"
  | "has-userinfo"
  | "address-not-allowed"
  | "dns-missing"
  | "dns-temporary";

export interface GuardRefusal {
  readonly ok: false;
  readonly code: GuardRefusalCode;
  readonly message: string;
}

interface GuardOptions {
  readonly resolve: Resolve;
  readonly reach: Reach;
}

export type Guard = (url: string) => Promise<{ readonly ok: true; readonly url: GuardedUrl } | GuardRefusal>;

/** Hosts with many addresses exist; dialling more than these in turn would outlast any time-out. */
const maxPinnedAddresses = 8;
const maxUrlLength = 2048;
const defaultPorts = { http: 80, https: 443, ws: 80, wss: 443 } as const;
// URL parsers drop or rewrite these silently; a URL that needs it was made to be read in two ways.
const controlSpaceOrBackslash = /[\x00-\x20\x7f\\]/;

const refuse = (code: GuardRefusalCode, message: string): GuardRefusal => ({ ok: false, code, message });

export async function guardUrl(
  text: string,
  { resolve, reach }: GuardOptions,
): Promise<{ readonly ok: true; readonly url: GuardedUrl } | GuardRefusal> {
  const parsed = readUrl(text);
  if (!parsed.ok) return parsed;
  const { href, scheme, hostname, port } = parsed;
  let addresses: readonly string[] = [hostname];
  if (addressKind(hostname) === undefined) {
    const resolution = await resolve(hostname);
    if (!resolution.ok) return refuse(resolution.code, resolution.message);
    addresses = resolution.addresses;
  }
  if (addresses.length === 0) return refuse("dns-missing", `${hostname} has no address`);
  for (const address of addresses) {
    const kind = addressKind(address);
    // One bad address condemns the name: which of them a later dial would take is not ours to choose.
    if (kind === undefined || !mayDial(kind, reach)) {
      return refuse(
        "address-not-allowed",
        `${hostname} has an address that is not dialled (${kind ?? "not an address"})`,
      );
    }
  }
  const pinned = Object.freeze(addresses.slice(0, maxPinnedAddresses));
  return { ok: true, url: Object.freeze({ href, scheme, hostname, port, addresses: pinned }) as GuardedUrl };
}

export const guardWith =
  (options: GuardOptions): Guard =>
  (url) =>
    guardUrl(url, options);

type ReadUrl = ({ readonly ok: true } & Omit<Checked, "addresses">) | GuardRefusal;

function readUrl(text: string): ReadUrl {
  if (text.length > maxUrlLength || controlSpaceOrBackslash.test(text)) {
    return refuse("bad-url", "the URL is too long or has control characters, spaces or backslashes");
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return refuse("bad-url", "not an absolute URL");
  }
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== "http" && scheme !== "https" && scheme !== "ws" && scheme !== "wss") {
    return refuse("bad-scheme", "only http, https, ws and wss are dialled");
  }
  if (url.username !== "" || url.password !== "")
    return refuse("has-userinfo", "URLs with a user name are not dialled");
  // `host.` is another spelling of `host` that throttles and "is it us" would take for a second server.
  if (url.hostname === "" || url.hostname.endsWith(".")) return refuse("bad-url", "the host is empty or ends in a dot");
  if (url.port === "0") return refuse("bad-url", "port 0 cannot be dialled");
  url.hash = "";
  return {
    ok: true,
    href: url.href,
    scheme,
    hostname: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? defaultPorts[scheme] : Number(url.port),
  };
}

/**
 * The value of git's `http.curloptResolve` that pins the checked addresses; undefined when the host is itself an
 * address and curl has nothing to look up.
 */
export function curlResolveEntry(url: GuardedUrl): string | undefined {
  if (addressKind(url.hostname) !== undefined) return undefined;
  const addresses = url.addresses.map((address) => (address.includes(":") ? `[${address}]` : address));
  return `${url.hostname}:${url.port}:${addresses.join(",")}`;
}

interface PinnedConnection {
  readonly lookup: LookupFunction;
  /** How long one of several addresses may take before the next is tried. Node's 250 ms is too short for far hosts. */
  readonly autoSelectFamilyAttemptTimeout: number;
}

/**
 * Socket options that answer every look-up with the pinned addresses, whatever name is asked and whatever DNS says by now.
 * The name stays in SNI, certificate check and Host header.
 */
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

// Names to addresses. A resolver is an argument, so that tests can answer for the network. It tells "this name does not
// exist" (the name's fault) from "no answer now" (perhaps ours): health rules differ.

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
