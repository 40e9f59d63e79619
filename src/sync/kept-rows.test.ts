// What sync keeps over restarts, as it is read at the next start.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import type { RememberedId } from "./core/messages.js";
import { id, key } from "./core/testing/driver.js";
import { KeptRows } from "./kept-rows.js";

test("remembered ids are read a thousand at a time, and those whose time is over are gone afterwards", async (context) => {
  const clock = new ManualClock();
  const store = createMemoryStore({ clock });
  context.after(() => store.close());
  const kept = new KeptRows(store, clock, (error) => assert.fail(String(error)));
  const nowMs = 5_000_000;
  const entries = Array.from(
    { length: 4_500 },
    (_, n): RememberedId => ({
      id: id(`n${n}`),
      kind: 30617,
      author: key("a"),
      identifier: `d${n}`,
      reason: "service-not-listed",
      relay: "a.example",
      untilWallMs: n % 3 === 0 ? nowMs - 1 : nowMs + 1,
    }),
  );
  for (const entry of entries) kept.execute({ type: "remember", entry });
  await kept.close();
  const found: RememberedId[] = [];
  for await (const page of kept.remembered(nowMs)) {
    assert.ok(page.length <= 1_000);
    found.push(...page);
  }
  assert.equal(found.length, 3_000);
  assert.deepEqual(
    new Set(found.map((one) => one.id)),
    new Set(entries.filter((_, n) => n % 3 > 0).map((one) => one.id)),
  );
  await kept.close();
  let left = 0;
  for await (const _row of store.rows("remembered")) left += 1;
  assert.equal(left, 3_000);
});
