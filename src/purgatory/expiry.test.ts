import assert from "node:assert/strict";
import { test } from "node:test";
import type { CatalogueRow } from "../catalogue/repositories.js";
import type { EntryKind, EntrySource, WaitingEntry, WaitingPhase } from "../catalogue/waiting.js";
import { clockJumpSeconds, type Expiry, expiryOf, isGraceOver, movedBy, takenBefore } from "./expiry.js";

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

const graces = { unhostGraceSeconds: 500, auditSeconds: 100 };
for (const [status, since, checkedAt, expected] of [
  ["served", 0, null, false],
  ["waiting", 0, 0, false],
  ["leaving", 500, null, true],
  ["leaving", 501, null, false],
  ["leaving", 900, 0, false],
  ["deleted", 500, null, true],
  ["deleted", 900, null, false],
  ["deleted", 900, undefined, false],
  ["deleted", 900, 900, true],
  ["deleted", 900, 901, false],
] as const) {
  const tool = typeof checkedAt === "number" ? `, by the compliance tool at ${checkedAt}` : "";
  test(`the grace of a repository that is ${status} since ${since}${tool} is ${expected ? "" : "not "}over`, () => {
    const row = { status, since, checkedAt } as CatalogueRow;
    assert.equal(isGraceOver(row, now, graces), expected);
  });
}

for (const [jump, before, after] of [
  [3_600, [900, 990, 1_000], [4_600, 4_605]],
  [-3_600, [900, 4_500, 4_600], [1_000, 1_005]],
] as const) {
  test(`a jump of ${jump} s moves the times from before it, and none from after it`, () => {
    const wallSeconds = jump > 0 ? 1_000 : 4_600;
    const look = (seconds: number, monotonicMs: number) => ({ wallMs: seconds * 1_000, monotonicMs });
    const isOlder = takenBefore(jump, look(wallSeconds, 0), look(wallSeconds + jump + 5, 5_000));
    assert.deepEqual(before.map(isOlder), [true, true, true]);
    assert.deepEqual(after.map(isOlder), [false, false]);
    const [old, young] = [before[1], after[0]];
    const entry = { entered: old, firstWaited: old, expires: old + 100 } as WaitingEntry;
    const moved = { entered: old + jump, firstWaited: old + jump, renewed: old + jump, expires: old + 100 + jump };
    assert.deepEqual(movedBy(entry, jump, isOlder), moved);
    const renewed = { ...entry, renewed: young, expires: young + 100 };
    assert.deepEqual(movedBy(renewed, jump, isOlder), { ...moved, renewed: young, expires: young + 100 });
  });
}
