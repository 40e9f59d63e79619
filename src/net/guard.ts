// The outbound guard: the only maker of GuardedUrl, and everything that dials takes nothing else. threats.md rows 4, 5.
// A name is resolved once, every address it has is judged, and exactly those addresses are dialled: a second look-up
// with another answer (rebinding) never happens.

import { isIPv6, type LookupFunction } from "node:net";
import type { Brand } from "../base/brand.js";
import { addressKind, mayDial, type Reach } from "./address.js";
import type { Resolve } from "./resolve.js";

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
