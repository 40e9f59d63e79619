import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../base/clock.js";
import { ManualClock } from "../base/testing/manual-clock.js";
import { dnsFailureCode, systemResolver } from "./resolve.js";

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
