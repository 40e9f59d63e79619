import assert from "node:assert/strict";
import { test } from "node:test";
import { ipGroup } from "./address-group.js";

test("an IPv4 address is its own visitor, an IPv6 address belongs to its /64, a mapped address is IPv4", () => {
  const cases: [string, string][] = [
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["2001:db8:0:1::5", "2001:db8:0:1::/64"],
    ["2001:0DB8::1:ffff:0:0:9", "2001:db8:0:1::/64"],
    ["2001:db8:0:1:ffff:ffff:ffff:ffff", "2001:db8:0:1::/64"],
    ["2001:db8:0:2::5", "2001:db8:0:2::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["unknown", "unknown"],
  ];
  for (const [ip, group] of cases) assert.equal(ipGroup(ip), group, ip);
});
