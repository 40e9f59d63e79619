import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type AddressKind, addressKind, mayDial } from "./address.js";

const table: readonly (readonly [string, AddressKind | undefined])[] = [
  ["8.8.8.8", "public"],
  ["1.0.0.0", "public"],
  ["9.255.255.255", "public"],
  ["11.0.0.0", "public"],
  ["100.63.255.255", "public"],
  ["100.128.0.0", "public"],
  ["126.255.255.255", "public"],
  ["128.0.0.0", "public"],
  ["169.253.255.255", "public"],
  ["172.15.255.255", "public"],
  ["172.32.0.0", "public"],
  ["192.0.1.0", "public"],
  ["192.167.255.255", "public"],
  ["198.17.255.255", "public"],
  ["198.20.0.0", "public"],
  ["223.255.255.255", "public"],
  ["0.0.0.0", "unspecified"],
  ["0.1.2.3", "reserved"],
  ["10.0.0.0", "private"],
  ["10.255.255.255", "private"],
  ["172.16.0.1", "private"],
  ["172.31.255.255", "private"],
  ["192.168.1.1", "private"],
  ["100.64.0.1", "shared"],
  ["100.127.255.255", "shared"],
  ["100.100.100.200", "metadata"],
  ["127.0.0.1", "loopback"],
  ["127.255.255.254", "loopback"],
  ["168.63.129.16", "metadata"],
  ["169.254.0.1", "link-local"],
  ["169.254.169.254", "metadata"],
  ["169.254.170.2", "metadata"],
  ["192.0.0.1", "reserved"],
  ["192.0.0.192", "metadata"],
  ["192.0.2.1", "documentation"],
  ["192.88.99.1", "reserved"],
  ["198.18.0.1", "reserved"],
  ["198.19.255.255", "reserved"],
  ["198.51.100.1", "documentation"],
  ["203.0.113.1", "documentation"],
  ["224.0.0.1", "multicast"],
  ["239.255.255.255", "multicast"],
  ["240.0.0.1", "reserved"],
  ["255.255.255.254", "reserved"],
  ["255.255.255.255", "broadcast"],
  ["2606:4700:4700::1111", "public"],
  ["2001:4860:4860::8888", "public"],
  ["2a00::1", "public"],
  ["3ffe::1", "public"],
  ["::", "unspecified"],
  ["0:0:0:0:0:0:0:0", "unspecified"],
  ["::1", "loopback"],
  ["0000:0000:0000:0000:0000:0000:0000:0001", "loopback"],
  ["::ffff:127.0.0.1", "loopback"],
  ["::ffff:7f00:1", "loopback"],
  ["0:0:0:0:0:FFFF:7F00:0001", "loopback"],
  ["::ffff:169.254.169.254", "metadata"],
  ["::ffff:8.8.8.8", "public"],
  ["::ffff:0:10.0.0.1", "private"],
  ["::ffff:0:8.8.8.8", "reserved"],
  ["::127.0.0.1", "loopback"],
  ["::10.0.0.1", "private"],
  ["::8.8.8.8", "reserved"],
  ["::2", "reserved"],
  ["64:ff9b::127.0.0.1", "loopback"],
  ["64:ff9b::a00:1", "private"],
  ["64:ff9b::a9fe:a9fe", "metadata"],
  ["64:ff9b::8.8.8.8", "public"],
  ["64:ff9b:1::8.8.8.8", "reserved"],
  ["64:ff9b:1:ffff::10.0.0.1", "reserved"],
  ["64:ff9b::1:0:0", "reserved"],
  ["100::1", "reserved"],
  ["2001::1", "reserved"],
  ["2001:0:1234:5678:0:0:80ff:fffe", "loopback"],
  ["2001:0:1234:5678:0:0:f5ff:fffe", "private"],
  ["2001:0:1234:5678:0:0:f7f7:f7f7", "reserved"],
  ["2001:2::1", "reserved"],
  ["2001:20::1", "reserved"],
  ["2001:200::1", "public"],
  ["2001:db8::1", "documentation"],
  ["2002:7f00:1::1", "loopback"],
  ["2002:c0a8:101::1", "private"],
  ["2002:a9fe:a9fe::", "metadata"],
  ["2002:808:808::1", "reserved"],
  ["3fff::1", "documentation"],
  ["3fff:fff::1", "documentation"],
  ["5f00::1", "reserved"],
  ["4000::1", "reserved"],
  ["fc00::1", "private"],
  ["fd12:3456::1", "private"],
  ["fd00:ec2::254", "metadata"],
  ["fd20:ce::254", "metadata"],
  ["fe80::1", "link-local"],
  ["febf::1", "link-local"],
  ["fec0::1", "private"],
  ["ff02::1", "multicast"],
  ["fe80::1%eth0", undefined],
  ["2606:4700::1%eth0", undefined],
  ["localhost", undefined],
  ["", undefined],
  ["1.2.3", undefined],
  ["0x7f.0.0.1", undefined],
  ["2130706433", undefined],
  ["[::1]", undefined],
  ["::ffff:0x7f.1", undefined],
];

for (const [text, kind] of table) {
  test(`the address ${JSON.stringify(text)} is ${kind ?? "none"}`, () => {
    assert.equal(addressKind(text), kind);
  });
}

test("an IPv4 address is judged alike however IPv6 routes to it", () => {
  const byte = fc.integer({ min: 0, max: 255 });
  fc.assert(
    fc.property(byte, byte, byte, byte, (a, b, c, d) => {
      const dotted = `${a}.${b}.${c}.${d}`;
      const kind = addressKind(dotted);
      assert.equal(addressKind(`::ffff:${dotted}`), kind);
      assert.equal(addressKind(`64:ff9b::${dotted}`), kind);
    }),
  );
});

test("metadata, link-local, multicast and reserved addresses are dialled under no setting", () => {
  const never = [
    "metadata",
    "link-local",
    "multicast",
    "broadcast",
    "unspecified",
    "documentation",
    "reserved",
  ] as const;
  for (const reach of ["public", "loopback", "private"] as const) {
    for (const kind of never) assert.equal(mayDial(kind, reach), false, `${kind} at ${reach}`);
    assert.equal(mayDial("public", reach), true);
  }
  assert.deepEqual(
    (["loopback", "private", "shared"] as const).map((kind) => [
      mayDial(kind, "public"),
      mayDial(kind, "loopback"),
      mayDial(kind, "private"),
    ]),
    [
      [false, true, true],
      [false, false, true],
      [false, false, true],
    ],
  );
});
