// What kind of place an IP address is. Owns the table; opens nothing, resolves nothing. threats.md row 4.
// Only global unicast is "public". An IPv6 address that carries an IPv4 address leads to that one, so it is judged as it.

import { isIPv4, isIPv6 } from "node:net";

export type AddressKind =
  | "public"
  | "loopback"
  | "private"
  | "shared"
  | "link-local"
  | "metadata"
  | "unspecified"
  | "multicast"
  | "broadcast"
  | "documentation"
  | "reserved";

/** How far we may dial: `loopback` for test suites (NGIT_TEST), `private` also for home and company networks. */
export type Reach = "public" | "loopback" | "private";

/** How far outbound connections may go, by settings: one answer for sync and hunt (threats row 4). */
export const reachOf = (config: { readonly allowPrivateAddresses: boolean; readonly test: boolean }): Reach =>
  config.allowPrivateAddresses ? "private" : config.test ? "loopback" : "public";

const dialled: Readonly<Record<Reach, readonly AddressKind[]>> = {
  public: ["public"],
  loopback: ["public", "loopback"],
  // Metadata and link-local services hand out credentials to whoever asks from inside: no setting opens them.
  private: ["public", "loopback", "private", "shared"],
};

export const mayDial = (kind: AddressKind, reach: Reach): boolean => dialled[reach].includes(kind);

interface Range {
  readonly bytes: readonly number[];
  readonly bits: number;
  readonly kind: AddressKind | "embedded";
  /** For `embedded`: where the four IPv4 bytes stand, and whether a public one is really reached that way. */
  readonly at?: number;
  readonly inverted?: boolean;
  readonly routed?: boolean;
}

function range(cidr: string, kind: Range["kind"], more: Pick<Range, "at" | "inverted" | "routed"> = {}): Range {
  const slash = cidr.indexOf("/");
  const bytes = addressBytes(cidr.slice(0, slash));
  if (!bytes) throw new Error(`not an address range: ${cidr}`);
  return { bytes, bits: Number(cidr.slice(slash + 1)), kind, ...more };
}

// First match wins: the narrower range stands before the wider.
const ipv4Ranges: readonly Range[] = [
  range("0.0.0.0/32", "unspecified"),
  range("0.0.0.0/8", "reserved"),
  range("10.0.0.0/8", "private"),
  range("100.100.100.200/32", "metadata"), // Alibaba Cloud, inside carrier-grade NAT space
  range("100.64.0.0/10", "shared"),
  range("127.0.0.0/8", "loopback"),
  range("168.63.129.16/32", "metadata"), // Azure's host agent: a public address that every virtual machine can reach
  range("169.254.169.254/32", "metadata"),
  range("169.254.170.0/24", "metadata"), // ECS and EKS task credentials
  range("169.254.0.0/16", "link-local"),
  range("172.16.0.0/12", "private"),
  range("192.0.0.192/32", "metadata"), // Oracle Cloud, classic
  range("192.0.0.0/24", "reserved"),
  range("192.0.2.0/24", "documentation"),
  range("192.88.99.0/24", "reserved"), // the withdrawn 6to4 anycast relay
  range("192.168.0.0/16", "private"),
  range("198.18.0.0/15", "reserved"), // benchmarking
  range("198.51.100.0/24", "documentation"),
  range("203.0.113.0/24", "documentation"),
  range("224.0.0.0/4", "multicast"),
  range("255.255.255.255/32", "broadcast"),
  range("240.0.0.0/4", "reserved"),
  range("0.0.0.0/0", "public"),
];

const ipv6Ranges: readonly Range[] = [
  range("::/128", "unspecified"),
  range("::1/128", "loopback"),
  range("::ffff:0:0/96", "embedded", { at: 12, routed: true }), // IPv4-mapped: the kernel dials IPv4
  range("::ffff:0:0:0/96", "embedded", { at: 12 }), // IPv4-translated (SIIT)
  range("::/96", "embedded", { at: 12 }), // IPv4-compatible, withdrawn
  range("64:ff9b::/96", "embedded", { at: 12, routed: true }), // NAT64: how IPv6-only hosts reach IPv4
  range("64:ff9b:1::/48", "reserved"), // local-use NAT64: leads wherever the local network says
  range("100::/64", "reserved"), // discard
  range("2001::/32", "embedded", { at: 12, inverted: true }), // Teredo: the client's address, inverted
  range("2001:db8::/32", "documentation"),
  range("2001::/23", "reserved"), // protocol assignments
  range("2002::/16", "embedded", { at: 2 }), // 6to4
  range("3fff::/20", "documentation"),
  range("fd00:ec2::254/128", "metadata"), // AWS over IPv6
  range("fd20:ce::254/128", "metadata"), // Google Cloud over IPv6
  range("fc00::/7", "private"), // unique local
  range("fe80::/10", "link-local"),
  range("fec0::/10", "private"), // site-local, withdrawn
  range("ff00::/8", "multicast"),
  range("2000::/3", "public"),
  range("::/0", "reserved"), // not assigned by IANA
];

/** The kind of an IP address in text form; undefined when the text is none (zone ids are not accepted). */
export function addressKind(text: string): AddressKind | undefined {
  const bytes = addressBytes(text);
  return bytes && kindOf(bytes);
}

function kindOf(bytes: readonly number[]): AddressKind {
  const found = (bytes.length === 4 ? ipv4Ranges : ipv6Ranges).find((candidate) => isInside(bytes, candidate));
  if (!found) return "reserved";
  if (found.kind !== "embedded") return found.kind;
  const inner = bytes.slice(found.at, (found.at ?? 0) + 4).map((byte) => (found.inverted ? 255 - byte : byte));
  const kind = kindOf(inner);
  // Nobody honest lives behind the withdrawn transition schemes; a tunnel we do not know may end anywhere.
  return kind === "public" && !found.routed ? "reserved" : kind;
}

function isInside(bytes: readonly number[], { bytes: prefix, bits }: Range): boolean {
  for (let index = 0; index * 8 < bits; index++) {
    const mask = (0xff << Math.max(0, 8 - (bits - index * 8))) & 0xff;
    if (((bytes[index] ?? 0) & mask) !== ((prefix[index] ?? 0) & mask)) return false;
  }
  return true;
}

/** 4 or 16 bytes. Only the canonical dotted form counts as IPv4: `0x7f.1` and `010.1.1.1` mean different things to different parsers. */
function addressBytes(text: string): number[] | undefined {
  if (isIPv4(text)) return text.split(".").map(Number);
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const [head = "", tail] = text.split("::");
  const front = groupBytes(head);
  const back = groupBytes(tail ?? "");
  return [...front, ...new Array<number>(16 - front.length - back.length).fill(0), ...back];
}

function groupBytes(groups: string): number[] {
  if (groups === "") return [];
  return groups.split(":").flatMap((group) => {
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
