import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ManualClock } from "./base/testing/manual-clock.js";
import { returnFreeMemory } from "./free-memory.js";

const hasGlibc = "glibcVersionRuntime" in ((process.report.getReport() as { header: object }).header ?? {});

test("what is free between buffers in use goes back to the system", { skip: !hasGlibc && "no glibc" }, async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
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
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const before = process.memoryUsage.rss();
  await aSecond();
  await returning.close();
  const returned = before - process.memoryUsage.rss();
  assert.ok(returned > 40 * 2 ** 20, `${returned >> 20} MiB of 87 MiB, ${buffers.length} buffers in use`);
});
