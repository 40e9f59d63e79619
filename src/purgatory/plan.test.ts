import assert from "node:assert/strict";
import { test } from "node:test";
import { maintainers, nameOf, startSeconds, state, World } from "../admission/testing/world.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { alignmentOf, canDecide, decidingStates, headOf, wantedRefs } from "./plan.js";

const oid = (digit: string): Oid => digit.repeat(40) as Oid;
const map = <T>(entries: Record<string, T>): Map<RefName, T> => new Map(Object.entries(entries) as [RefName, T][]);
const held = (entries: Record<string, Oid>) =>
  map(Object.fromEntries(Object.entries(entries).map(([k, v]) => [k, { oid: v }])));

const heads: readonly (readonly [string, readonly string[], string | undefined, string | undefined])[] = [
  ["the branch the state names", ["refs/heads/a", "refs/heads/main"], "refs/heads/a", "refs/heads/a"],
  ["its only branch when the named one is not there", ["refs/heads/z"], "refs/heads/main", "refs/heads/z"],
  [
    "main when nothing useful is named",
    ["refs/heads/a", "refs/heads/main", "refs/heads/master"],
    undefined,
    "refs/heads/main",
  ],
  ["master without main", ["refs/heads/a", "refs/heads/master"], "refs/heads/gone", "refs/heads/master"],
  ["else the first", ["refs/heads/z", "refs/heads/b"], undefined, "refs/heads/b"],
  ["nothing without branches", [], "refs/heads/main", undefined],
];
for (const [what, branches, named, expected] of heads) {
  test(`HEAD is ${what}`, () => assert.equal(headOf(branches as RefName[], named), expected));
}

test("refs are created, moved and deleted to equal the state; other namespaces stay", () => {
  const wanted = map({ "refs/heads/main": oid("2"), "refs/tags/new": oid("3"), "refs/heads/same": oid("1") });
  const current = held({
    "refs/heads/main": oid("1"),
    "refs/heads/same": oid("1"),
    "refs/heads/old": oid("1"),
    "refs/tags/old": oid("1"),
    "refs/nostr/x": oid("1"),
  });
  const { updates, missing, head } = alignmentOf(wanted, undefined, current, () => true);
  assert.deepEqual(updates, [
    { ref: "refs/heads/main", to: oid("2") },
    { ref: "refs/tags/new", to: oid("3") },
    { ref: "refs/heads/old", to: undefined },
    { ref: "refs/tags/old", to: undefined },
  ]);
  assert.deepEqual(missing, []);
  assert.equal(head, "refs/heads/main");
});

test("a ref whose new objects are missing keeps its old value and is told; one that never was is no HEAD", () => {
  const wanted = map({ "refs/heads/main": oid("2"), "refs/heads/far": oid("9"), "refs/heads/kept": oid("9") });
  const current = held({ "refs/heads/kept": oid("1") });
  const result = alignmentOf(wanted, "refs/heads/far", current, (id) => id !== oid("9"));
  assert.deepEqual(result.updates, [{ ref: "refs/heads/main", to: oid("2") }]);
  assert.deepEqual(result.missing, ["refs/heads/far", "refs/heads/kept"]);
  assert.equal(result.head, "refs/heads/main");
});

test("threats 1: a state with one value that is no object id is not well formed", () => {
  const ref = (name: string, value: string) => ({ name, value });
  const of = (...refs: { name: string; value: string }[]) => wantedRefs({ refs } as never).wellFormed;
  assert.equal(of(ref("refs/heads/a", oid("1"))), true);
  for (const value of ["", "-x", oid("A"), `${oid("1")}\n`, "+refs/heads/x:refs/heads/y"]) {
    assert.equal(of(ref("refs/heads/a", oid("1")), ref("refs/heads/b", value)), false, value);
  }
});

test("states of members count, served and waiting, newest first; those of strangers never", async () => {
  const world = new World();
  await world.host("alice", "x", [maintainers("bob")]);
  await world.host("eve", "x", [maintainers("alice")]);
  const served = state("alice", "x", undefined, startSeconds);
  await world.store.put(served);
  const waiting = state("bob", "x", undefined, startSeconds + 5);
  const odd = state("alice", "x", [["refs/heads/main", "-x"]], startSeconds + 3);
  for (const event of [waiting, odd, state("eve", "x", [["refs/heads/main", oid("e")]])]) await world.send(event);
  const states = await decidingStates(world.store, nameOf("alice", "x"));
  assert.deepEqual(
    states.map((found) => [found.event.id, found.entry !== undefined, canDecide(found)]),
    [
      [waiting.id, true, true],
      [odd.id, true, false],
      [served.id, false, true],
    ],
  );
});
