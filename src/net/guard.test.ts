import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { systemClock } from "../base/clock.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { Reach } from "./address.js";
import { curlResolveEntry, dnsFailureCode, guardUrl, hostsEntries, type Resolution, systemResolver } from "./guard.js";

const names: Readonly<Record<string, Resolution>> = {
  "public.test": { ok: true, addresses: ["8.8.8.8", "2606:4700:4700::1111"] },
  "loop.test": { ok: true, addresses: ["127.0.0.1"] },
  "both.test": { ok: true, addresses: ["8.8.8.8", "10.0.0.1"] },
  "both6.test": { ok: true, addresses: ["2606:4700:4700::1111", "fd00::1"] },
  "mapped.test": { ok: true, addresses: ["::ffff:169.254.169.254"] },
  "nonsense.test": { ok: true, addresses: ["not an address"] },
  "empty.test": { ok: true, addresses: [] },
  "gone.test": { ok: false, code: "dns-missing", message: "gone" },
  "flaky.test": { ok: false, code: "dns-temporary", message: "flaky" },
};
const resolve = async (name: string): Promise<Resolution> => {
  const found = names[name];
  if (!found) throw new Error(`the resolver was asked for ${name}`);
  return found;
};

async function outcome(url: string, reach: Reach = "public"): Promise<string> {
  const result = await guardUrl(url, { resolve, reach });
  return result.ok ? "ok" : result.code;
}

const refused: readonly (readonly [string, string])[] = [
  ["http://127.0.0.1/x.git", "address-not-allowed"],
  ["http://127.1/", "address-not-allowed"],
  ["http://2130706433/", "address-not-allowed"],
  ["http://0x7f000001/", "address-not-allowed"],
  ["http://0177.0.0.1/", "address-not-allowed"],
  ["http://0x7f.0.0.0x1/", "address-not-allowed"],
  ["http://%31%32%37.0.0.1/", "address-not-allowed"],
  ["http://127。0。0。1/", "address-not-allowed"],
  ["http://①②⑦.0.0.1/", "address-not-allowed"],
  ["http://0/", "address-not-allowed"],
  ["http://10.1.2.3/", "address-not-allowed"],
  ["http://192.168.0.1:8080/", "address-not-allowed"],
  ["http://169.254.169.254/latest/meta-data/", "address-not-allowed"],
  ["http://100.64.0.1/", "address-not-allowed"],
  ["http://224.0.0.1/", "address-not-allowed"],
  ["http://[::1]/", "address-not-allowed"],
  ["http://[::]/", "address-not-allowed"],
  ["http://[::ffff:127.0.0.1]/", "address-not-allowed"],
  ["http://[::ffff:7f00:1]/", "address-not-allowed"],
  ["http://[64:ff9b::7f00:1]/", "address-not-allowed"],
  ["http://[fe80::1]/", "address-not-allowed"],
  ["http://[fc00::1]/", "address-not-allowed"],
  ["wss://[2002:7f00:1::]/", "address-not-allowed"],
  ["http://loop.test/", "address-not-allowed"],
  ["wss://both.test/", "address-not-allowed"],
  ["https://both6.test/", "address-not-allowed"],
  ["https://mapped.test/", "address-not-allowed"],
  ["https://nonsense.test/", "address-not-allowed"],
  ["https://empty.test/", "dns-missing"],
  ["https://gone.test/", "dns-missing"],
  ["https://flaky.test/", "dns-temporary"],
  ["file:///etc/passwd", "bad-scheme"],
  ["ssh://public.test/x", "bad-scheme"],
  ["git://public.test/x", "bad-scheme"],
  ["ftp://public.test/x", "bad-scheme"],
  ["ext::sh -c whoami", "bad-url"],
  ["ext::sh", "bad-scheme"],
  ["git@public.test:x.git", "bad-url"],
  ["/srv/git/x.git", "bad-url"],
  ["../x.git", "bad-url"],
  ["--upload-pack=x", "bad-url"],
  ["", "bad-url"],
  ["https://user@public.test/", "has-userinfo"],
  ["https://user:secret@public.test/", "has-userinfo"],
  ["https://public.test@127.0.0.1/", "has-userinfo"],
  ["https://public.test\\@127.0.0.1/", "bad-url"],
  ["https:\\\\public.test/", "bad-url"],
  ["https://public.test/\r\nHost: x", "bad-url"],
  ["https://public.test/\u0000", "bad-url"],
  [" https://public.test/", "bad-url"],
  ["https://public.test./", "bad-url"],
  ["https://public.test:0/", "bad-url"],
  ["https://public.test:99999/", "bad-url"],
  [`https://public.test/${"x".repeat(2048)}`, "bad-url"],
];

for (const [url, code] of refused) {
  test(`${JSON.stringify(url.slice(0, 60))} is refused as ${code}`, async () => {
    assert.equal(await outcome(url), code);
  });
}

test("a public name passes and carries the judged spelling, port and every address", async () => {
  const result = await guardUrl("HTTPS://Public.TEST/a/../b.git?x=1#part", { resolve, reach: "public" });
  assert.ok(result.ok);
  assert.deepEqual(result.url, {
    href: "https://public.test/b.git?x=1",
    scheme: "https",
    hostname: "public.test",
    port: 443,
    addresses: ["8.8.8.8", "2606:4700:4700::1111"],
  });
  assert.equal(curlResolveEntry(result.url), "public.test:443:8.8.8.8,[2606:4700:4700::1111]");
  assert.throws(() => Object.assign(result.url, { addresses: ["127.0.0.1"] }));
});

test("an address literal is judged without asking the resolver and needs no pin for curl", async () => {
  const result = await guardUrl("http://[2606:4700:4700::1111]:8080/", { resolve, reach: "public" });
  assert.ok(result.ok);
  assert.equal(result.url.hostname, "2606:4700:4700::1111");
  assert.equal(result.url.port, 8080);
  assert.equal(curlResolveEntry(result.url), undefined);
});

test("test suites may dial loopback, private settings also private networks, and neither the metadata service", async () => {
  assert.equal(await outcome("http://127.0.0.1:3000/", "loopback"), "ok");
  assert.equal(await outcome("http://10.0.0.1/", "loopback"), "address-not-allowed");
  assert.equal(await outcome("http://127.0.0.1/", "private"), "ok");
  assert.equal(await outcome("http://10.0.0.1/", "private"), "ok");
  assert.equal(await outcome("http://100.64.0.1/", "private"), "ok");
  assert.equal(await outcome("http://169.254.169.254/", "private"), "address-not-allowed");
});

test("a name with very many addresses has all judged and a few pinned", async () => {
  const addresses = Array.from({ length: 200 }, (_, index) => `8.8.${index}.1`);
  const many = await guardUrl("https://many.test/", {
    resolve: async () => ({ ok: true, addresses }),
    reach: "public",
  });
  assert.ok(many.ok);
  assert.equal(many.url.addresses.length, 8);
  const poisoned = [...addresses, "127.0.0.1"];
  const bad = await guardUrl("https://many.test/", {
    resolve: async () => ({ ok: true, addresses: poisoned }),
    reach: "public",
  });
  assert.equal(bad.ok, false);
});

test("the system's resolver knows localhost", async () => {
  const found = await systemResolver(systemClock)("localhost");
  assert.ok(found.ok);
  assert.ok(found.addresses.includes("127.0.0.1") || found.addresses.includes("::1"));
});

test("an answer that does not come in time is a temporary failure", async () => {
  const clock = new ManualClock();
  const pending = systemResolver(clock, 1_000)("localhost");
  clock.advance(1_000);
  const found = await pending;
  assert.deepEqual([found.ok, !found.ok && found.code], [false, "dns-temporary"]);
});

test("only a name that does not exist is missing; every other error may pass", () => {
  assert.equal(dnsFailureCode("ENOTFOUND"), "dns-missing");
  for (const code of ["EAI_AGAIN", "EAI_FAIL", "ESERVFAIL", "ETIMEOUT", "ECONNREFUSED", "EAI_MEMORY", undefined]) {
    assert.equal(dnsFailureCode(code), "dns-temporary");
  }
});

test("threat 49: silent name servers hold up nothing but the look-ups themselves, and those end in time", async (context) => {
  const silent = createSocket("udp4");
  silent.bind(0, "127.0.0.1");
  await once(silent, "listening");
  context.after(() => silent.close());
  const clock = new ManualClock();
  const resolve = systemResolver(clock, 5_000, [`127.0.0.1:${silent.address().port}`]);
  const asked = once(silent, "message");
  let settled = 0;
  const pending = Array.from({ length: 32 }, async (_none, index) => {
    const found = await resolve(`name-${index}.example`);
    settled++;
    return found;
  });
  await asked;
  // More of them than there are threads; a file is looked at all the same.
  await stat(".");
  assert.equal(settled, 0);
  clock.advance(5_000);
  for (const found of await Promise.all(pending)) assert.equal(!found.ok && found.code, "dns-temporary");
});

test("the hosts file is read as the system reads it", () => {
  const text =
    "127.0.0.1 localhost\n# 1.1.1.1 commented\n192.0.2.7\tGit.Example git # trailing\n::1 localhost\nnot-an-ip x\n";
  assert.deepEqual(hostsEntries(text, "localhost"), ["127.0.0.1", "::1"]);
  assert.deepEqual(hostsEntries(text, "git.example"), ["192.0.2.7"]);
  assert.deepEqual(hostsEntries(text, "git"), ["192.0.2.7"]);
  for (const name of ["commented", "x", "trailing"]) assert.deepEqual(hostsEntries(text, name), []);
});
