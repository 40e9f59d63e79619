import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Registry } from "prom-client";
import { ManualClock } from "../base/testing/manual-clock.js";
import type { Config } from "../config/config.js";
import { type DiskReading, Disks, readDisk, refusedForDisk } from "./disk.js";

describe("an event while the disk fills up", () => {
  const cases: readonly [string, number, { git: number; relay: number }, boolean][] = [
    ["an issue below the mark", 1_621, { git: 0.94, relay: 0.94 }, true],
    ["an issue at the mark", 1_621, { git: 0, relay: 0.95 }, false],
    ["an issue while only git's disk is full", 1_621, { git: 0.99, relay: 0.5 }, true],
    ["an announcement while only git's disk is full", 30_617, { git: 0.99, relay: 0.5 }, false],
    ["a state while only git's disk is full", 30_618, { git: 0.95, relay: 0.5 }, false],
    ["a pull request while only git's disk is full", 1_618, { git: 0.95, relay: 0.5 }, false],
    ["a deletion on a full disk", 5, { git: 1, relay: 1 }, true],
    ["a request to vanish on a full disk", 62, { git: 1, relay: 1 }, true],
  ];
  for (const [name, kind, used, isTaken] of cases) {
    it(`${name} is ${isTaken ? "taken" : "refused"}`, () => {
      const refusal = refusedForDisk({ kind }, used, 95);
      assert.equal(refusal === undefined, isTaken);
      if (refusal) assert.equal(refusal.code, "disk-full");
    });
  }
});

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
