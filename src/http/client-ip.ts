// Who is asking: the peer's address, or what a trusted proxy says about it. A stranger's X-Forwarded-For is ignored.

import type { IncomingMessage } from "node:http";
import { BlockList, isIP, isIPv6 } from "node:net";

export type TrustedProxies = BlockList;

/** `10.0.0.0/8`, `::1/128` or a single address each; the texts that are none of these are returned. */
export function trustedProxies(cidrs: readonly string[]): { readonly list: TrustedProxies; readonly bad: string[] } {
  const list = new BlockList();
  const bad: string[] = [];
  for (const cidr of cidrs) {
    const [address = "", bits, ...rest] = cidr.trim().split("/");
    const family = isIP(address);
    const most = family === 6 ? 128 : 32;
    const prefix = bits === undefined ? most : /^\d{1,3}$/.test(bits) ? Number(bits) : -1;
    if (family === 0 || prefix < 0 || prefix > most || rest.length > 0) bad.push(cidr);
    else list.addSubnet(address, prefix, family === 6 ? "ipv6" : "ipv4");
  }
  return { list, bad };
}

export const loopbackCidrs = ["127.0.0.0/8", "::1/128"];

const loopback = trustedProxies(loopbackCidrs).list;

/** IPv4 arrives as `::ffff:192.0.2.1` on a dual-stack socket; zones and brackets are not part of an address. */
function plainIp(text: string): string | undefined {
  const bare = text.trim().replace(/^\[(.*)\](?::\d+)?$/, "$1");
  const ip = bare.replace(/^::ffff:(\d+\.\d+\.\d+\.\d+)$/i, "$1").replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1");
  return isIP(ip) === 0 ? undefined : ip;
}

const isIn = (list: BlockList, ip: string): boolean => list.check(ip, isIPv6(ip) ? "ipv6" : "ipv4");

export function peerIp(request: { readonly socket: { readonly remoteAddress?: string | undefined } }): string {
  return plainIp(request.socket.remoteAddress ?? "") ?? "unknown";
}

/** What proxies add, and what a browser adds that asks for another site's page: every answer allows that (CORS). */
const signsOfOthers = ["x-forwarded-for", "x-forwarded-host", "x-real-ip", "forwarded", "via", "origin"];

/**
 * A program on this machine that nobody forwarded (threats row 31). It calls us by a local name: a proxy that adds no
 * header passes the public one on, and a stranger's page reaches us under a name of his that resolves to loopback.
 */
export const isLocalPeer = (request: IncomingMessage): boolean => {
  const ip = peerIp(request);
  if (isIP(ip) === 0 || !isIn(loopback, ip)) return false;
  if (signsOfOthers.some((name) => request.headers[name] !== undefined)) return false;
  const host = (request.headers.host ?? "localhost").replace(/:\d*$/, "").toLowerCase();
  const literal = plainIp(host);
  return host === "localhost" || (literal !== undefined && isIn(loopback, literal));
};

/** Each trusted proxy vouches for the entry before it: from the right, the first that is not trusted is the client. */
export function clientIp(request: IncomingMessage, trusted: TrustedProxies): string {
  let ip = peerIp(request);
  const header = request.headers["x-forwarded-for"];
  const forwarded = (Array.isArray(header) ? header.join(",") : (header ?? "")).split(",");
  while (isIP(ip) !== 0 && isIn(trusted, ip)) {
    const next = plainIp(forwarded.pop() ?? "");
    if (next === undefined) break;
    ip = next;
  }
  return ip;
}
