import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { collectGarbage } from "./base/collect-garbage.js";
import { forgetKeptValues, KeptValues } from "./base/kept-values.js";
import { hasGlibc } from "./base/testing/has-glibc.js";
import { ManualClock } from "./base/testing/manual-clock.js";
import { largeBytesFor, type MemoryUse, MemoryWatch, returnFreeMemory } from "./free-memory.js";

test("what is free between buffers in use goes back to the system", { skip: !hasGlibc && "no glibc" }, async () => {
  const clock = new ManualClock();
  const returning = returnFreeMemory(clock, assert.ifError);
  const aSecond = async (): Promise<void> => {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await aSecond();
  const { arrayBuffers: others } = process.memoryUsage();
  let buffers = Array.from({ length: 1_600 }, () => Buffer.alloc(64 * 1024, 1));
  await aSecond();
  buffers = buffers.filter((_, at) => at % 8 === 0);
  // The collector frees buffers in another thread.
  while (process.memoryUsage().arrayBuffers > others + 30 * 2 ** 20) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const before = process.memoryUsage.rss();
  await aSecond();
  await returning.close();
  const returned = before - process.memoryUsage.rss();
  assert.ok(returned > 40 * 2 ** 20, `${returned >> 20} MiB of 87 MiB, ${buffers.length} buffers in use`);
});

const mebibytes = (count: number): number => count * 2 ** 20;
const used = (own: number, buffers = 0): MemoryUse => ({ ownBytes: mebibytes(own), bufferBytes: mebibytes(buffers) });

test("a process is large above 320 MiB, or above three fifths of what it may have, and never below 128 MiB", () => {
  const large = [Number.POSITIVE_INFINITY, mebibytes(1_024), mebibytes(400), mebibytes(64)].map(largeBytesFor);
  assert.deepEqual(large, [320, 320, 240, 128].map(mebibytes));
});

describe("a watch over memory", () => {
  test("asks for nothing while the process is small, and to trim once 16 MiB of buffers became free", () => {
    const watch = new MemoryWatch(mebibytes(320));
    assert.equal(watch.look(used(200, 50), 0), "nothing");
    assert.equal(watch.look(used(200, 40), 1_000), "nothing");
    assert.equal(watch.look(used(200, 34), 2_000), "trim");
    watch.trimmed(2_000);
    assert.equal(watch.look(used(200, 33), 3_000), "nothing");
  });

  test("asks to trim a small process no more than every fifteen seconds, and one that grows as often as it is worth it", () => {
    const watch = new MemoryWatch(mebibytes(320));
    watch.look(used(100, 50), 0);
    watch.trimmed(0);
    assert.equal(watch.look(used(100, 30), 1_000), "nothing");
    assert.equal(watch.look(used(161, 30), 2_000), "trim");
    watch.trimmed(2_000);
    watch.look(used(100, 50), 16_000);
    assert.equal(watch.look(used(100, 30), 16_999), "nothing");
    assert.equal(watch.look(used(100, 30), 17_000), "trim");
  });

  test("asks to collect garbage in a large process, again only after it grew by a quarter, and not at once", () => {
    const watch = new MemoryWatch(mebibytes(320));
    assert.equal(watch.look(used(321), 0), "collect");
    assert.equal(watch.collected(used(400), 0), true);
    assert.equal(watch.look(used(499), 60_000), "nothing");
    assert.equal(watch.look(used(501), 60_000), "collect");
    assert.equal(watch.collected(used(300), 60_000), false);
    assert.equal(watch.look(used(390), 61_999), "nothing");
    assert.equal(watch.look(used(390), 62_000), "collect");
  });

  test("begins anew with a process that became small", () => {
    const watch = new MemoryWatch(mebibytes(320));
    watch.look(used(800), 0);
    watch.collected(used(800), 0);
    assert.equal(watch.look(used(330), 10_000), "nothing");
    assert.equal(watch.look(used(250), 11_000), "nothing");
    assert.equal(watch.look(used(330), 12_000), "collect");
  });

  test("looks four times a second from half of large on", () => {
    const watch = new MemoryWatch(mebibytes(320));
    assert.deepEqual(
      [160, 161].map((own) => watch.nextLookMs(used(own))),
      [1_000, 250],
    );
  });
});

test("a large process is collected and trimmed, and what is kept for readers goes when it stays large", async () => {
  const kept = new KeptValues<string>(1_000);
  kept.set("page", "text", 10);
  const clock = new ManualClock();
  const done: string[] = [];
  let own = 330;
  const memory = {
    limitBytes: Number.POSITIVE_INFINITY,
    use: () => used(own),
    collect: () => void done.push("collect"),
    trim: async () => void done.push("trim"),
    forgetKept: () => {
      done.push("forget");
      forgetKeptValues();
    },
  };
  const returning = returnFreeMemory(clock, assert.ifError, memory);
  const after = async (ms: number): Promise<void> => {
    clock.advance(ms);
    await new Promise((resolve) => setImmediate(resolve));
  };
  await after(1_000);
  assert.deepEqual(done.splice(0), ["collect", "trim", "forget"]);
  assert.deepEqual([kept.get("page"), kept.weight], [undefined, 0]);
  // It is looked at more often now.
  own = 420;
  for (let looks = 0; looks < 8; looks++) await after(250);
  assert.deepEqual(done, ["collect", "trim", "forget"]);
  await returning.close();
});
