import assert from "node:assert/strict";
import { it } from "node:test";
import { InUse } from "./keyed-lock.js";

/** Runs until it is told to stop. */
const untilStopped = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => signal.addEventListener("abort", () => setImmediate(() => resolve("stopped"))));

it("work stops the housekeeping of its repository, waits for its end, and leaves others alone", async () => {
  const way = new InUse();
  const order: string[] = [];
  const other = new AbortController();
  const tidyingOther = way.tidy("b", other.signal, untilStopped);
  const tidying = way.tidy("a", undefined, async (signal) => order.push(await untilStopped(signal)));
  await way.during(["a"], async () => order.push("work"));
  await tidying;
  assert.deepEqual(order, ["stopped", "work"]);
  other.abort();
  assert.equal(await tidyingOther, "stopped");
});

it("housekeeping does not begin while somebody works there or another tidies, and does afterwards", async () => {
  const way = new InUse();
  const now = async (): Promise<string> => "done";
  await way.during(["a", "b"], async () => {
    await way.during(["a"], async () => undefined);
    assert.equal(await way.tidy("a", undefined, now), undefined);
    assert.equal(await way.tidy("b", undefined, now), undefined);
    assert.equal(await way.tidy("c", undefined, () => way.tidy("c", undefined, now)), undefined);
  });
  assert.equal(await way.tidy("a", undefined, now), "done");
});

it("housekeeping that failed is over", async () => {
  const way = new InUse();
  await assert.rejects(
    way.tidy("a", undefined, () => Promise.reject(new Error("disk"))),
    /disk/,
  );
  assert.equal(await way.during(["a"], async () => "work"), "work");
  assert.equal(await way.tidy("a", undefined, async () => "done"), "done");
});

it("housekeeping that insists goes on beside work, and ends for a removal", async () => {
  const way = new InUse();
  await way.during(["a"], async () => {
    const order: string[] = [];
    const tidying = way.tidy("a", undefined, async (signal) => order.push(await untilStopped(signal)), true);
    await way.during(["a"], async () => order.push("work"));
    await way.during(["a"], async () => order.push("removal"), { always: true });
    await tidying;
    assert.deepEqual(order, ["work", "stopped", "removal"]);
  });
});

it("housekeeping that insists does not begin beside who works alone, and does afterwards", async () => {
  const way = new InUse();
  const now = async (): Promise<string> => "done";
  const alone = way.during(
    ["a"],
    async () => {
      await way.during(["a"], async () => undefined, { always: true });
      return await way.tidy("a", undefined, now, true);
    },
    { always: true },
  );
  assert.equal(await alone, undefined);
  assert.equal(await way.tidy("a", undefined, now, true), "done");
});
