// After a start nothing that waited before it expires until it was hunted once; how long beyond that is the operator's
// setting (purgatory.md, "Waiting room").

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { waitingEntry } from "../../src/catalogue/waiting.js";
import { fromClient, HuntHouse, until } from "../harness/hunt-house.js";
import { keyOf } from "../harness/relay-events.js";

test("with no grace set, what waited before a restart may expire as soon as it was hunted once", async (context) => {
  const clock = new ManualClock(Date.now());
  const owner = keyOf("grace owner");
  const environment = { NGIT_PURGATORY_START_GRACE_SECS: "0" };
  const before = await HuntHouse.start({ clock, environment });
  await before.announce(owner, "demo", [], { source: fromClient });
  const state = await before.state(owner, "demo", { "refs/heads/main": "1".repeat(40) }, { source: fromClient });
  await before.shut();
  clock.advance(40 * 60_000);
  const house = await HuntHouse.start({ from: before, environment });
  context.after(() => house.close());
  const isWaiting = async (): Promise<boolean> => (await waitingEntry(house.store, state.id)) !== undefined;
  await house.sweep();
  assert.equal(await isWaiting(), true, "it was not hunted yet");
  await until(
    "it expired",
    async () => {
      clock.advance(20_000);
      await house.sweep();
      return !(await isWaiting());
    },
    30_000,
  );
  assert.ok(clock.monotonicMs() < (40 + 9) * 60_000, "long before ten minutes were over");
});
