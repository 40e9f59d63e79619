import assert from "node:assert/strict";
import { test } from "node:test";
import { Registry } from "prom-client";
import { announcement, nameOf } from "../admission/testing/world.js";
import { waitingAnnouncement } from "../catalogue/waiting.js";
import { Room } from "../intake/testing/room.js";
import { countEntries, createPurgatoryMetrics } from "./metrics.js";

test("an announcement that goes soft and then for good is counted as expired once", async (context) => {
  const room = await Room.open();
  context.after(() => room.close());
  const registry = new Registry();
  const metrics = createPurgatoryMetrics(registry, () => countEntries(room.store));
  room.expired = (entry, expiry) => metrics.expired(entry, expiry);
  await room.send(announcement("alice", "x", [], room.now));
  const seen = async (): Promise<unknown[]> => {
    const values = (await registry.getSingleMetric("ngit_purgatory_expired_total")?.get())?.values;
    return [(await waitingAnnouncement(room.store, nameOf("alice", "x")))?.phase, values?.map(({ value }) => value)];
  };
  assert.deepEqual(await seen(), ["waiting", []]);
  await room.advance(31 * 60);
  assert.deepEqual(await seen(), ["soft", [1]]);
  await room.advance(25 * 3_600);
  assert.deepEqual(await seen(), [undefined, [1]]);
});
