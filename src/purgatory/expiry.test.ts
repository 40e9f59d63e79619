import assert from "node:assert/strict";
import { test } from "node:test";
import type { EntryKind, EntrySource, WaitingEntry, WaitingPhase } from "../admission/waiting.js";
import { clockJumpSeconds, type Expiry, expiryOf } from "./expiry.js";

const now = 1_000;
const times = { softSeconds: 100, rememberSeconds: 700 };
const gone: Expiry = { to: "gone", rememberUntil: undefined };
const table: readonly (readonly [EntryKind, WaitingPhase, EntrySource["type"], Expiry])[] = [
  ["announcement", "waiting", "client", { to: "soft", expires: 1_100, dropRepository: true }],
  ["announcement", "waiting", "sync", { to: "soft", expires: 1_100, dropRepository: true }],
  ["announcement", "soft", "client", gone],
  ["state", "waiting", "client", gone],
  ["state", "waiting", "sync", { to: "soft", expires: 1_700, dropRepository: false }],
  ["state", "soft", "sync", { to: "gone", rememberUntil: 1_700 }],
  ["pull-request", "waiting", "client", gone],
  ["pull-request", "waiting", "sync", { to: "soft", expires: 1_700, dropRepository: false }],
  ["pull-request", "soft", "sync", { to: "gone", rememberUntil: 1_700 }],
  ["related", "waiting", "sync", gone],
];
for (const [kind, phase, type, expected] of table) {
  test(`a ${kind} from ${type}, ${phase}, becomes ${expected.to}`, () => {
    const source = type === "sync" ? { type, relay: "wss://peer.example" } : { type };
    const entry = { kind, phase, source } as WaitingEntry;
    assert.deepEqual(expiryOf(entry, now, times), expected);
  });
}

test("jumps of the wall clock are seen in both directions, small drift is not", () => {
  const jump = (wallMs: number): number =>
    clockJumpSeconds({ wallMs: 0, monotonicMs: 0 }, { wallMs: 60_000 + wallMs, monotonicMs: 60_000 }, 300);
  assert.deepEqual([jump(0), jump(299_000), jump(3_600_000), jump(-3_600_000)], [0, 0, 3_600, -3_600]);
});
