import assert from "node:assert/strict";
import { test } from "node:test";
import { newEntry } from "./entries.js";
import { announcement, client, outcome, startSeconds, World } from "./testing/world.js";
import { putWaiting } from "./waiting-writes.js";

test("soft announcements, however many, do not hide that a key has its share waiting", async () => {
  const world = new World({ caps: { announcementsPerKey: 5, announcementsPerIpAndHour: 1_000 } });
  for (let n = 0; n < 60; n++) {
    const entry = newEntry({
      kind: "announcement",
      event: announcement("alice", `a-soft-${n}`),
      source: client(),
      nowSeconds: startSeconds,
      deadline: { phase: "soft", expires: startSeconds + 1_000 },
      repositories: [],
    });
    await putWaiting(world.store, entry);
  }
  const outcomes: string[] = [];
  for (let n = 0; n < 6; n++) outcomes.push(outcome(await world.send(announcement("alice", `z-waiting-${n}`))));
  assert.deepEqual(outcomes, ["hold", "hold", "hold", "hold", "hold", "too-many-waiting"]);
});
