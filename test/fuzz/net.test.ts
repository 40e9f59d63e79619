// Fuzz: normal forms of URLs and the outbound guard. Oracles: the WHATWG parser of Node for URLs; for addresses a
// node:net BlockList of IANA's special-purpose registries, asked about every IPv4 address that a notation can carry.

import assert from "node:assert/strict";
import { BlockList, isIPv4, isIPv6 } from "node:net";
import { describe, test } from "node:test";
import fc from "fast-check";
import { type GuardedUrl, guardUrl } from "../../src/net/guard.js";
import { normalCloneUrl, normalRelayUrl, pathBelowService, serviceName, servicePart } from "../../src/net/url.js";
import { parameters, spiced } from "./runs.js";

const forbidden = new BlockList();
for (const [net, bits] of [
  ...([
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
  ] as const),
  ...([
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
  ] as const),
  ...([
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 4],
    ["240.0.0.0", 4],
  ] as const),
] as const) {
  forbidden.addSubnet(net, bits, "ipv4");
}
/** Of IPv6 only global unicast is dialled, and of that not what these name. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");
const special = new BlockList();
for (const [net, bits] of [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const) {
  special.addSubnet(net, bits, "ipv6");
}

const dotted = (ip: number): string => [24, 16, 8, 0].map((shift) => (ip >>> shift) & 255).join(".");
const hex4 = (value: number): string => (value & 0xffff).toString(16);
const lowHalf = (ip: number): string => `${hex4(ip >>> 16)}:${hex4(ip)}`;

/** Ways to write an IPv4 address into a URL that some program will read as that address. */
const notations: Record<string, (ip: number) => string> = {
  dotted,
  decimal: (ip) => String(ip >>> 0),
  hex: (ip) => `0x${(ip >>> 0).toString(16)}`,
  "upper hex": (ip) => `0X${(ip >>> 0).toString(16).toUpperCase()}`,
  octal: (ip) => `0${(ip >>> 0).toString(8)}`,
  "hex parts": (ip) =>
    dotted(ip)
      .split(".")
      .map((part) => `0x${Number(part).toString(16)}`)
      .join("."),
  "octal parts": (ip) =>
    dotted(ip)
      .split(".")
      .map((part) => `0${Number(part).toString(8)}`)
      .join("."),
  "padded octal": (ip) =>
    dotted(ip)
      .split(".")
      .map((part) => `000${Number(part).toString(8)}`)
      .join("."),
  "two parts": (ip) => `${ip >>> 24}.${ip & 0xffffff}`,
  "three parts": (ip) => `${ip >>> 24}.${(ip >>> 16) & 255}.${ip & 0xffff}`,
  "trailing dot": (ip) => `${dotted(ip)}.`,
  "full-width digits": (ip) => dotted(ip).replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
  "ideographic dots": (ip) => dotted(ip).replaceAll(".", "。"),
  "percent-encoded": (ip) => dotted(ip).replace(/\d/g, (digit) => `%3${digit}`),
  mapped: (ip) => `[::ffff:${dotted(ip)}]`,
  "mapped hex": (ip) => `[::FFFF:${lowHalf(ip)}]`,
  "mapped long": (ip) => `[0:0:0:0:0:ffff:${lowHalf(ip)}]`,
  compatible: (ip) => `[::${dotted(ip)}]`,
  translated: (ip) => `[::ffff:0:${dotted(ip)}]`,
  nat64: (ip) => `[64:ff9b::${dotted(ip)}]`,
  "nat64 hex": (ip) => `[64:ff9b:0:0:0:0:${lowHalf(ip)}]`,
  "6to4": (ip) => `[2002:${lowHalf(ip)}::1]`,
  teredo: (ip) => `[2001:0:1:2:3:4:${lowHalf(~ip)}]`,
};

const nearBoundaries = fc.oneof(
  fc.integer({ min: 0, max: 0xffffffff }),
  fc
    .tuple(
      fc.constantFrom(0x00000000, 0x0a000000, 0x64400000, 0x647fffff, 0x7f000001, 0xa9fea9fe, 0xac100000, 0xac1fffff),
      fc.integer({ min: -2, max: 2 }),
    )
    .map(([base, step]) => (base + step) >>> 0),
  fc
    .tuple(fc.constantFrom(0xc0a80000, 0xc0000200, 0xc6120000, 0xcb007100, 0xe0000000, 0xffffffff), fc.nat(2))
    .map(([base, step]) => (base - step) >>> 0),
);

const nobodyAnswers = async () => ({ ok: false as const, code: "dns-missing" as const, message: "no such name" });
const isPublicIpv4 = (text: string): boolean => !forbidden.check(text, "ipv4");

/** True only for what may be dialled by the oracle's own reading of the pinned address. */
function isPublic(address: string): boolean {
  if (isIPv4(address)) return isPublicIpv4(address);
  assert.ok(isIPv6(address), address);
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const embedded = /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(canonical);
  if (embedded) {
    const [high = 0, low = 0] = embedded.slice(1).map((part) => Number.parseInt(part, 16));
    return isPublicIpv4(dotted(((high << 16) | low) >>> 0));
  }
  return globalUnicast.check(canonical, "ipv6") && !special.check(canonical, "ipv6");
}

const checkDialled = (url: GuardedUrl): void => {
  assert.ok(url.addresses.length > 0);
  for (const address of url.addresses) assert.ok(isPublic(address), `${url.href} would dial ${address}`);
};

describe("fuzz: the outbound guard", () => {
  test("a forbidden IPv4 address is never dialled, in whatever notation", async () => {
    await fc.assert(
      fc.asyncProperty(
        nearBoundaries,
        fc.constantFrom(...Object.keys(notations)),
        fc.constantFrom("http", "https", "ws", "wss"),
        async (ip, name, scheme) => {
          const host = notations[name]?.(ip) ?? "";
          const checked = await guardUrl(`${scheme}://${host}:8080/x`, { resolve: nobodyAnswers, reach: "public" });
          if (!checked.ok) {
            // Plain public addresses are not refused for nothing.
            assert.ok(
              name !== "dotted" ||
                !isPublicIpv4(dotted(ip)) ||
                dotted(ip) === "168.63.129.16" ||
                dotted(ip).startsWith("192.88.99."),
              host,
            );
            return;
          }
          checkDialled(checked.url);
          assert.ok(isPublicIpv4(dotted(ip)), `${host} carries ${dotted(ip)}`);
        },
      ),
      parameters(3_000),
    );
  });

  test("a name is dialled only when every address it resolves to is public, and only at those", async () => {
    const someAddress = fc.oneof(
      nearBoundaries.map(dotted),
      fc.ipV6(),
      nearBoundaries.map((ip) => `::ffff:${dotted(ip)}`),
      fc.constantFrom("", "nonsense", "fe80::1%eth0", "127.1"),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(someAddress, { maxLength: 4 }), async (addresses) => {
        const resolve = async () => ({ ok: true as const, addresses });
        const checked = await guardUrl("https://name.example/x.git", { resolve, reach: "public" });
        if (!checked.ok) return;
        checkDialled(checked.url);
        for (const address of addresses) assert.ok(isPublic(address), `${address} beside others`);
        assert.ok(checked.url.addresses.every((address) => addresses.includes(address)));
      }),
      parameters(2_000),
    );
  });

  test("any text is refused or dialled where the WHATWG parser says", async () => {
    const pieces = [
      "http",
      "https",
      "ws",
      "file",
      ":",
      "/",
      "//",
      "@",
      "localhost",
      "127.0.0.1",
      "8.8.8.8",
      "[::1]",
      "#",
      "?",
      "\\",
      "%00",
      "\n",
      "\t",
      " ",
      "xn--",
      "ß",
      "..",
      "1",
      "0x",
      "example.com",
      ":80",
      ":0",
      ":99999",
    ];
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          spiced(pieces, 8),
          fc.webUrl(),
          spiced(pieces, 5).map((text) => `http://${text}`),
        ),
        async (text) => {
          const resolve = async () => ({ ok: true as const, addresses: ["93.184.216.34"] });
          const checked = await guardUrl(text, { resolve, reach: "public" });
          if (!checked.ok) return;
          checkDialled(checked.url);
          const url = new URL(text);
          assert.equal(checked.url.hostname, url.hostname.replace(/^\[|\]$/g, ""));
          assert.equal(new URL(checked.url.href).host, url.host);
          assert.equal(url.username + url.password, "");
          assert.ok(["http:", "https:", "ws:", "wss:"].includes(url.protocol));
        },
      ),
      parameters(3_000),
    );
  });
});

describe("fuzz: normal forms of URLs", () => {
  const hostPieces = [
    "example.com",
    "EXAMPLE.com",
    "a.b",
    "127.0.0.1",
    "[::1]",
    "ß.example",
    "x_y",
    "-",
    ":80",
    ":443",
    ":8080",
    ":",
    ".",
  ];
  const pathPieces = [
    "/",
    "//",
    "npub1x",
    "a.git",
    "%2F",
    "%2e%2e",
    "..",
    ".",
    "é",
    " ",
    "?q",
    "#f",
    "\\",
    "%",
    "@",
    ":",
  ];
  const urlText = fc
    .tuple(
      fc.constantFrom("ws", "wss", "WSS", "http", "https", "HTTP", "ftp", "wss "),
      fc.constantFrom("://", ":/", ":///", ":\\\\"),
      spiced(hostPieces, 2),
      spiced(pathPieces, 6),
    )
    .map(([scheme, slashes, host, path]) => `${scheme}${slashes}${host}${path.startsWith("/") ? path : `/${path}`}`);

  for (const [name, normal, schemes] of [
    ["relay", normalRelayUrl, ["ws:", "wss:"]],
    ["clone", normalCloneUrl, ["http:", "https:"]],
  ] as const) {
    test(`the normal form of a ${name} URL is its own normal form and names the same service`, () => {
      fc.assert(
        fc.property(fc.oneof(urlText, fc.webUrl({ withQueryParameters: true }), spiced(hostPieces, 6)), (text) => {
          const once = normal(text);
          if (once === undefined) return;
          assert.equal(normal(once), once, "idempotent");
          const [before, after] = [new URL(text), new URL(once)];
          assert.ok((schemes as readonly string[]).includes(after.protocol));
          assert.deepEqual([after.protocol, after.host], [before.protocol, before.host]);
          assert.deepEqual([after.search, after.hash, after.username, after.password], ["", "", "", ""]);
          assert.ok(!/\/$|\/\/|[\s\\]/.test(once.slice(once.indexOf("://") + 3)), once);
          assert.equal(servicePart(once), servicePart(text));
        }),
        parameters(2_000),
      );
    });
  }

  test("what lies below a service is of its host and path, compared as URLs", () => {
    const service = serviceName("relay.example.com/base");
    assert.ok(service);
    const near = fc
      .tuple(
        fc.constantFrom("http", "https", "ws", "wss"),
        fc.constantFrom(
          "relay.example.com",
          "RELAY.example.com:443",
          "relay.example.com:80",
          "relay.example.com.evil.org",
          "evil.org",
          "relay.example.com:81",
          "x@relay.example.com",
          "relay.example.com@evil.org",
        ),
        spiced(["/base", "/", "/base/", "base", "/..", "/%2e%2e", "x.git", "2", "//", "?", "#"], 4),
      )
      .map(([scheme, host, path]) => `${scheme}://${host}/${path}`);
    fc.assert(
      fc.property(near, (text) => {
        const below = pathBelowService(text, service);
        if (below === undefined) return;
        const url = new URL(text);
        assert.equal(url.hostname, "relay.example.com");
        assert.ok(["", "80", "443"].includes(url.port));
        const path = url.pathname.replace(/\/{2,}/g, "/").replace(/\/$/, "");
        assert.equal(path, `/base${below}`);
        assert.ok(below === "" || below.startsWith("/"));
      }),
      parameters(2_000),
    );
  });
});
