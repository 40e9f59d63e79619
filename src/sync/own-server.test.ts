import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfRepository, announcement, keyOf, makeEvent, World } from "../admission/testing/world.js";
import type { Change, Verdict } from "../admission/verdict.js";
import { systemClock } from "../base/clock.js";
import { createMemoryStore } from "../store/memory/memory-store.js";
import { Driver } from "./core/testing/driver.js";
import { ownSide, WaitingAnnouncements } from "./own-server.js";

const changesOf = (verdict: Verdict): readonly Change[] => (verdict.ok ? (verdict.changes ?? []) : []);

test("a repository that was deleted and announced again is followed, also when the feed tells of the end last", async (context) => {
  const world = new World();
  const driver = new Driver();
  const store = createMemoryStore({ clock: systemClock });
  context.after(() => store.close());
  const waiting = new WaitingAnnouncements(store, (input) => void driver.tell(input));
  const address = addressOfRepository("alice", "again");
  const first = await world.host("alice", "again", [["relays", "wss://a.example"]]);
  waiting.fromFeed({ type: "accepted", event: first, hosted: true });
  waiting.decided(changesOf(await world.send(makeEvent(keyOf("alice"), 5, [["a", address]], world.now))));
  world.now += 1;
  waiting.decided(
    changesOf(await world.send(announcement("alice", "again", [["relays", "wss://b.example"]], world.now))),
  );
  assert.equal(waiting.count, 1);
  waiting.fromFeed({ type: "removed", id: first.id, address, cause: "deletion" });
  driver.advance(5_000);
  assert.equal(driver.snapshot().repos, 1);
  assert.ok(driver.relay("b.example"));
  waiting.decided(changesOf(await world.send(makeEvent(keyOf("alice"), 5, [["a", address]], world.now))));
  waiting.fromFeed({ type: "removed", id: first.id, address, cause: "deletion" });
  assert.equal(driver.snapshot().repos, 0, "what waits no more is not brought back");
});

test("a verdict looks at the announcements it ends, not at all that wait", async (context) => {
  const world = new World();
  const store = createMemoryStore({ clock: systemClock });
  context.after(() => store.close());
  const ended: string[] = [];
  const waiting = new WaitingAnnouncements(store, (input) => {
    if (input.type === "unwaiting") ended.push(input.coordinate);
  });
  let looks = 0;
  for (let n = 0; n < 40; n++) {
    const verdict = await world.send(announcement("alice", `r${n}`, [], world.now));
    assert.ok(verdict.ok && verdict.action === "hold");
    const { entry } = verdict;
    const watched = Object.defineProperty({ ...entry }, "id", {
      get: () => {
        looks += 1;
        return entry.id;
      },
    });
    waiting.decided([{ type: "hold", entry: watched }]);
  }
  looks = 0;
  waiting.decided([]);
  assert.equal(looks, 0);
  waiting.decided(
    changesOf(await world.send(makeEvent(keyOf("alice"), 5, [["a", addressOfRepository("alice", "r7")]], world.now))),
  );
  assert.ok(looks <= 1, `${looks} looks`);
  assert.deepEqual(ended, [addressOfRepository("alice", "r7")]);
  assert.equal(waiting.count, 39);
});

test("private events are not among the records that are compared with other relays", async (context) => {
  const store = createMemoryStore({ clock: systemClock });
  context.after(() => store.close());
  const about = [["a", addressOfRepository("alice", "x")]];
  for (const kind of [1621, 78, 30_078]) {
    await store.transact((tx) => tx.put(makeEvent(keyOf("alice"), kind, about)));
  }
  const own = ownSide(store, systemClock, () => 10);
  const records = await own.records({ tags: new Map([["a", about[0]!.slice(1)]]) }, new AbortController().signal);
  assert.equal(records?.length, 1);
});
