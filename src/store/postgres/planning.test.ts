import assert from "node:assert/strict";
import { test } from "node:test";
import { ClusterRefusal } from "../../cluster/check-database.js";
import { storedName } from "../../packs/port.js";
import { judgeMark } from "./claim-packs.js";
import { whomToForget } from "./forgetting.js";
import { judgeView } from "./local-view.js";
import { planTrim, snapshotName, snapshotOf, snapshotsToRemove, type TrimFacts } from "./snapshots.js";

const limits = { snapshotEveryMs: 1_000, maxLogBytes: 100 };
const usual: TrimFacts = {
  oldest: 10,
  newest: 100,
  logBytes: 20,
  snapshot: 80,
  snapshotAgeMs: 10,
  nodes: [
    { applied: 100, silentMs: 1 },
    { applied: 60, silentMs: 5_000 },
  ],
};
const day = 86_400_000;

test("the log keeps what the newest snapshot and the slowest living machine need", () => {
  const cases: [string, Partial<TrimFacts>, { makesSnapshot: boolean; before: number }][] = [
    ["the slowest machine decides", {}, { makesSnapshot: false, before: 60 }],
    [
      "a machine silent for a day is not waited for",
      { nodes: [{ applied: 5, silentMs: day }] },
      { makesSnapshot: false, before: 80 },
    ],
    [
      "nothing behind the snapshot goes",
      { nodes: [{ applied: 100, silentMs: 0 }] },
      { makesSnapshot: false, before: 80 },
    ],
    ["without a snapshot nothing goes, and one is made", { snapshot: undefined }, { makesSnapshot: true, before: 10 }],
    ["an old snapshot is replaced", { snapshotAgeMs: 1_000 }, { makesSnapshot: true, before: 60 }],
    ["nothing new needs no snapshot", { snapshotAgeMs: 1_000, newest: 80 }, { makesSnapshot: false, before: 60 }],
    ["a large log has a snapshot made early", { logBytes: 51 }, { makesSnapshot: true, before: 60 }],
    ["a log beyond its limit leaves slow machines behind", { logBytes: 101 }, { makesSnapshot: true, before: 80 }],
    ["what is gone stays gone", { oldest: 70 }, { makesSnapshot: false, before: 70 }],
  ];
  for (const [title, facts, expected] of cases) {
    assert.deepEqual(planTrim({ ...usual, ...facts }, limits), expected, title);
  }
});

test("the newest two snapshots that fit the log are kept, whatever a lost history left", () => {
  const fits = (n: number) => ({ n, isInLog: true });
  const other = (n: number) => ({ n, isInLog: false });
  const cases: [string, { n: number; isInLog: boolean }[], number[]][] = [
    ["two that fit stay", [fits(90), fits(80)], []],
    ["a third goes", [fits(90), fits(80), fits(70)], [70]],
    ["snapshots of a lost history do not count", [other(200), other(190), fits(90), fits(80), fits(70)], [70]],
    ["what the log has passed goes", [fits(90), fits(80), other(40)], [40]],
    ["but two stay", [fits(90), other(40), other(30)], [30]],
    ["if none fits, two of those the log has passed stay", [other(40), other(30), other(20)], [20]],
  ];
  for (const [title, snapshots, expected] of cases) {
    assert.deepEqual(
      snapshotsToRemove(snapshots, 50).map(({ n }) => n),
      expected,
      title,
    );
  }
});

test("a snapshot's name says what it holds, and other files are none", () => {
  const snapshot = {
    n: 12,
    madeMs: 1_700_000_000_000,
    token: "0".repeat(8).concat("-1111-2222-3333-", "4".repeat(12)),
    digest: "ab".repeat(32),
  };
  const name = snapshotName(snapshot);
  assert.deepEqual(snapshotOf(name), { name, ...snapshot });
  for (const other of [`${name}.part`, "snapshots/view-.mdb", `other/${name}`, "snapshots/events-1.mdb"]) {
    assert.equal(snapshotOf(storedName(other)!), undefined, other);
  }
});

test("a view is kept only if the log goes on from it", () => {
  const applied = { n: 3, token: "t" };
  const base = { applied, isEmpty: false, isOfThisFormat: true, isInLog: true };
  assert.equal(judgeView(base), "keep");
  assert.equal(judgeView({ ...base, isInLog: false }), "renew");
  assert.equal(judgeView({ ...base, isOfThisFormat: false }), "renew");
  assert.equal(judgeView({ ...base, applied: undefined }), "foreign");
  assert.equal(judgeView({ ...base, applied: undefined, isEmpty: true }), "renew");
});

test("a silent machine is forgotten by its name or its identity, and a living one never", () => {
  const node = (id: string, name: string, isAlive: boolean) => ({ node: id.repeat(8), name, isAlive });
  const [one, two, twoBefore, three] = [
    node("a", "one", true),
    node("b", "two", true),
    node("c", "two", false),
    node("d", "three", false),
  ] as const;
  const all = [one, two, twoBefore, three];
  assert.deepEqual(whomToForget(all, "three"), { ok: true, nodes: [three] });
  assert.deepEqual(whomToForget(all, "dddddddd"), { ok: true, nodes: [three] });
  assert.deepEqual(whomToForget(all, "two"), { ok: true, nodes: [twoBefore] }, "set up anew under its name");
  const refusals: [string, RegExp][] = [
    ["one", /^one is alive: stop it first/],
    ["aaaaaaaa", /is alive/],
    ["d", /^no machine is called "d": there are one, two, two, three$/],
    ["four", /no machine is called/],
  ];
  for (const [wanted, sentence] of refusals) {
    const found = whomToForget(all, wanted);
    assert.match(found.ok ? "" : found.message, sentence, wanted);
  }
});

test("a pack store is taken once, and only by the cluster whose mark it carries", () => {
  const [cluster, other] = ["cluster", "other"];
  const cases: [string, Parameters<typeof judgeMark>[0]["mark"], string | undefined, string][] = [
    ["nobody's store is taken", undefined, undefined, "take"],
    ["a mark the database does not know yet is adopted", { cluster, token: "t" }, undefined, "adopt"],
    ["the cluster's own", { cluster, token: "t" }, "t", "ours"],
    ["an empty folder is not shared", undefined, "t", "pack-store-not-shared"],
    ["a copy with an old mark is not shared", { cluster, token: "old" }, "t", "pack-store-not-shared"],
    ["another cluster's", { cluster: other, token: "t" }, "t", "pack-store-of-another"],
    ["another cluster's at the first start", { cluster: other, token: "t" }, undefined, "pack-store-of-another"],
  ];
  for (const [title, mark, known, expected] of cases) {
    const verdict = judgeMark({ cluster, known, mark, words: "the store" });
    assert.equal(verdict instanceof ClusterRefusal ? verdict.code : verdict, expected, title);
  }
});
