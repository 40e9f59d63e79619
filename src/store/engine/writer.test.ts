import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../base/testing/manual-clock.js";
import { MemoryBackend } from "../memory/memory-store.js";
import { StoreFullError } from "../port.js";
import { eventOf } from "../testing/events.js";
import type { Change } from "./backend.js";
import { EngineStore } from "./engine.js";

/** A backend that cannot write one certain event, and none at all while it is full. */
class PickyBackend extends MemoryBackend {
  commits = 0;
  isDiskFull = false;

  override async commit(change: Change): Promise<void> {
    this.commits++;
    if (this.isDiskFull) throw new Error("full");
    if (change.added.some(({ event }) => event.content === "poison")) throw new Error("cannot write poison");
    await super.commit(change);
  }

  override isFull(error: unknown): boolean {
    return error instanceof Error && error.message === "full";
  }
}

const openStore = (backend: PickyBackend): EngineStore =>
  new EngineStore(backend, backend.layers, { clock: new ManualClock() });

test("one event that cannot be written does not take the other 199 of its commit with it", async () => {
  const backend = new PickyBackend();
  const store = openStore(backend);
  const events = Array.from({ length: 200 }, (_, index) => eventOf({ content: index === 77 ? "poison" : `${index}` }));
  const outcomes = await Promise.allSettled(events.map((event) => store.transact((tx) => tx.put(event))));
  assert.deepEqual(
    outcomes.flatMap(({ status }, index) => (status === "rejected" ? [index] : [])),
    [77],
  );
  assert.equal(await store.count([{}]), 199);
  assert.equal(store.position, 199);
  assert.equal(backend.commits, 201);
});

test("works that are handed over together share one commit", async () => {
  const backend = new PickyBackend();
  const store = openStore(backend);
  await Promise.all([1, 2, 3].map((at) => store.transact((tx) => tx.put(eventOf({ at })))));
  assert.equal(backend.commits, 1);
});

test("a disk that fills up in the middle of a commit refuses writers and answers those who wrote nothing", async () => {
  const backend = new PickyBackend();
  const store = openStore(backend);
  const first = eventOf({ content: "first" });
  await store.transact((tx) => tx.put(first));
  backend.isDiskFull = true;
  const [written, asked] = await Promise.allSettled([
    store.transact((tx) => tx.put(eventOf({ content: "second" }))),
    store.transact((tx) => tx.count([{}])),
  ]);
  assert.ok(written.status === "rejected" && written.reason instanceof StoreFullError);
  assert.deepEqual(asked, { status: "fulfilled", value: 1 });
  backend.isDiskFull = false;
  assert.equal((await store.transact((tx) => tx.put(eventOf({ content: "second" })))).stored, true);
});
