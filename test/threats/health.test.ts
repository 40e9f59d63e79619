// threats.md row 53: health endpoints asked without end.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { Gauge, Registry } from "prom-client";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { healthRoutes, metricsRoute } from "../../src/http/monitoring.js";
import { startRelay } from "../harness/relay-server.js";
import { newFolder, removeFolder, startInProcess, until } from "../harness/server.js";

describe("threat 53", { timeout: 900_000 }, () => {
  test("threat 53: /readyz and /metrics are worked out once a second, however often they are asked", async () => {
    const clock = new ManualClock();
    let checks = 0;
    let reads = 0;
    const registry = new Registry();
    new Gauge({ name: "asked", help: "asked", registers: [registry], collect: () => void reads++ });
    const isReady = (): boolean => ++checks > 0;
    const relay = await startRelay({
      routes: [
        ...healthRoutes([{ name: "store", isReady }], { clock, keptMs: () => 1_000 }, () =>
          assert.fail("no check fails"),
        ),
        metricsRoute(registry, { clock, keptMs: () => 1_000 }, () => ({ isPublic: true })),
      ],
    });
    try {
      const ask = async (): Promise<void> => {
        const paths = ["/readyz", "/metrics", "/healthz"];
        const statuses = paths.map(async (path) => (await fetch(`http://127.0.0.1:${relay.port}${path}`)).status);
        assert.deepEqual(await Promise.all(statuses), [200, 200, 200]);
      };
      await Promise.all(Array.from({ length: 30 }, ask));
      assert.deepEqual([checks, reads], [1, 1]);
      clock.advance(1_000);
      await ask();
      assert.deepEqual([checks, reads], [2, 2]);
    } finally {
      await relay.close();
    }
  });

  test("threat 53: whether the store is writable is known without writing", async () => {
    const folder = await newFolder();
    const server = await startInProcess({ backend: "lmdb", folder });
    try {
      const bytes = (): Promise<Buffer> => readFile(`${folder}/relay/events-1.mdb`);
      // What the start wrote is on disk.
      let before = await bytes();
      await until(async () => {
        const now = await bytes();
        const isQuiet = now.equals(before);
        before = now;
        return isQuiet;
      });
      assert.equal((await fetch(`${server.origin}/readyz`)).status, 200);
      assert.ok((await bytes()).equals(before), "the store's file is as it was");
    } finally {
      await server.stop();
      await removeFolder(folder);
    }
  });
});
