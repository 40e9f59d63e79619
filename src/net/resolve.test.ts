import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { stat } from "node:fs/promises";
import { test } from "node:test";
import { systemClock } from "../base/clock.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { dnsFailureCode, hostsEntries, systemResolver } from "./resolve.js";

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
