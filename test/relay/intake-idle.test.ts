// A server that closes waits for what intake was given, also when whoever sent it has left.

import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { createIntake } from "../../src/intake/intake.js";
import { createVerifierPool } from "../../src/nostr/verify/pool.js";
import { createMemoryStore } from "../../src/store/memory/memory-store.js";
import { keyOf, sign } from "../harness/relay-events.js";
import { acceptAll } from "../harness/relay-server.js";

test("intake is idle only when git has followed the last event", async (t) => {
  const store = createMemoryStore();
  const verifier = await createVerifierPool({ workers: 1 });
  t.after(() => Promise.all([store.close(), verifier.close()]));
  const order: string[] = [];
  let follow = (): void => undefined;
  const isAtWork = new Promise<void>((atWork) => {
    follow = atWork;
  });
  let end = (): void => undefined;
  const intake = createIntake({
    store,
    verifier,
    policy: acceptAll,
    carryOut: {
      follow: () => {
        follow();
        return new Promise((resolve) => {
          end = () => resolve(true);
        });
      },
    },
    gitFailed: (_event, error) => assert.fail(String(error)),
    clock: systemClock,
    observer: { received: () => undefined, decided: () => order.push("decided") },
    live: { current: defaultConfig() },
  });
  await intake.idle();
  void intake.submit(sign(keyOf("owner"), { kind: 30617, tags: [["d", "r"]] }), { type: "own" });
  await isAtWork;
  const idle = intake.idle().then(() => order.push("idle"));
  await new Promise((resolve) => setImmediate(resolve));
  order.push("git ends");
  end();
  await idle;
  assert.deepEqual(order, ["git ends", "decided", "idle"]);
});
