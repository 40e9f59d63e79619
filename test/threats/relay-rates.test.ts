// threats.md rows 39, 40 and 50: how much work and how many bytes clients may bring, by address.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { RelayClient } from "../harness/relay-client.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { startRelay } from "../harness/relay-server.js";
import { RelayWorld } from "./relay-world.js";

const author = keyOf("author");
const hex = (index: number): string => index.toString(16).padStart(64, "0");

describe("threats 39, 40 and 50", { timeout: 900_000 }, () => {
  test("threat 39: deletions count by their targets and large events by their tags; an address of many counts once", async (t) => {
    const clock = new ManualClock();
    const server = await startRelay({ clock, limits: { pingIntervalSecs: 1e6 } }, t);
    const from = (ip: string) => RelayClient.connect(server.url, { headers: { "X-Forwarded-For": ip } });
    const client = await from("2001:db8::1");
    let serial = 0;
    const accepted = async (kind: number, tagCount: number, attempts: number, by = client): Promise<number> => {
      let count = 0;
      for (let attempt = 0; attempt < attempts; attempt++) {
        const tags = Array.from({ length: tagCount }, (_, index) => ["e", hex(serial * 10_000 + index)]);
        const [, , ok, text] = await by.publish(sign(author, { kind, tags, content: String(serial++) }));
        if (ok) count++;
        else assert.match(String(text), /^rate-limited: .*(slow down)/);
      }
      return count;
    };
    // As much as a minute allows: one with a thousand targets from a full bucket, then none until that is paid back.
    assert.equal(await accepted(5, 1_000, 20), 1);
    assert.equal(await accepted(1, 1, 5), 0);
    clock.advance(60_000);
    assert.equal(await accepted(5, 10, 100), 20);
    clock.advance(60_000);
    // 2,000 tags of 64 digits are 21 by their number and 8 by their size.
    assert.equal(await accepted(1, 2_000, 40), 20);
    // The whole network shares the address's rate: of 3,000 a minute three such are left, whoever asks.
    clock.advance(10 * 60_000);
    let fromTheNetwork = 0;
    for (let index = 2; index < 10; index++) {
      fromTheNetwork += await accepted(5, 1_000, 1, await from(`2001:db8::${index}`));
    }
    assert.equal(fromTheNetwork, 3);
    assert.equal(await accepted(5, 1_000, 1, await from("2001:db8:0:1::1")), 1, "another network is not affected");
    assert.deepEqual(server.faults, []);
  });

  test("threat 40: events of a megabyte without end are taken up to the bytes of a day, and the refusal says so", async (t) => {
    const world = await RelayWorld.start(t, {
      NGIT_EVENTS_PER_DAY_PER_AUTHOR_BYTES: "4MiB",
      NGIT_EVENTS_PER_DAY_PER_REPOSITORY_BYTES: "6MiB",
      NGIT_EVENTS_PER_DAY_PER_IP_BYTES: "1GiB",
    });
    const publishMany = async (name: string): Promise<string[]> => {
      const refusals: string[] = [];
      for (let at = 0; at < 6; at++) {
        const [ok, text] = await world.publish(world.issue(keyOf(name), `${at}`.padEnd(1_000_000, "x")).event);
        if (!ok) refusals.push(text);
      }
      return refusals;
    };
    const first = await publishMany("flooder");
    assert.equal(first.length, 2);
    assert.match(first[0] ?? "", /^rate-limited: at most 4 MiB of events by one author are taken in a day: try again/);
    const second = await publishMany("another key");
    assert.equal(second.length, 4);
    assert.match(second[0] ?? "", /^rate-limited: at most 6 MiB of events about one repository are taken in a day/);
    assert.equal(await world.metric("ngit_events_rejected_total", { reason: "author-bytes", kind: "1621" }), 2);
    assert.equal(await world.metric("ngit_events_rejected_total", { reason: "repository-bytes", kind: "1621" }), 4);
    // What was refused was not kept; the owner goes on.
    assert.equal(await world.count({ kinds: [1621] }), 6);
    const own = world.owner.sign(1621, [["a", world.coordinate]], "x".repeat(1_000_000));
    assert.deepEqual(await world.publish(own), [true, ""]);
  });
});
