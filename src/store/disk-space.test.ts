import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { Config } from "../config/config.js";
import { type DiskReading, Disks, readDisk } from "./disk-space.js";

describe("disks", () => {
  const config = { databaseBackend: "lmdb", gitDataPath: "/git", relayDataPath: "/relay" } as Config;

  it("are looked at every two seconds, however often somebody asks, and recover by themselves", async () => {
    const clock = new ManualClock();
    let looks = 0;
    const free: Record<string, number> = { "/git": 50, "/relay": 90 };
    const read = async (folder: string): Promise<DiskReading | undefined> => {
      looks++;
      return { totalBytes: 100, freeBytes: free[folder] ?? 0 };
    };
    const disks = await Disks.open(config, clock, read);
    assert.equal(disks.fullest, 0.5);
    for (let asked = 0; asked < 100; asked++) disks.shareUsed("relay");
    assert.equal(looks, 2);
    free["/relay"] = 5;
    await pass(clock);
    assert.equal(disks.fullest, 0.95);
    assert.equal(disks.gitFreeBytes, 50);
    free["/relay"] = 90;
    await pass(clock);
    assert.equal(disks.fullest, 0.5);
    const registry = new Registry();
    disks.measure(registry);
    const text = await registry.metrics();
    assert.match(text, /ngit_disk_used_ratio\{volume="git"\} 0\.5/);
    assert.match(text, /ngit_disk_free_bytes\{volume="relay"\} 90/);
    await disks.close();
  });

  it("are known before the folder is there", async () => {
    const { totalBytes = 0, freeBytes = 0 } = (await readDisk("/not/there/yet")) ?? {};
    assert.ok(totalBytes > 0 && freeBytes <= totalBytes);
  });

  it("that cannot be read count as they were, and before that as empty", async () => {
    const clock = new ManualClock();
    let reading: DiskReading | undefined;
    const disks = await Disks.open(config, clock, async () => reading);
    assert.equal(disks.fullest, 0);
    reading = { totalBytes: 10, freeBytes: 1 };
    await pass(clock);
    assert.equal(disks.fullest, 0.9);
    reading = undefined;
    await pass(clock);
    assert.equal(disks.fullest, 0.9);
    await disks.close();
  });
});

/** Two seconds, and the look that falls into them. */
async function pass(clock: ManualClock): Promise<void> {
  clock.advance(2_000);
  await new Promise((resolve) => setImmediate(resolve));
}
