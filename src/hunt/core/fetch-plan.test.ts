import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Oid } from "../../nostr/ids.js";
import { FetchPlan } from "./fetch-plan.js";
import { oid } from "./testing/driven-core.js";

const ids = (from: number, to: number): Oid[] => Array.from({ length: to - from }, (_, index) => oid(from + index));
const limits = { requests: 10, unadvertised: 8 };

/** A server that gives a request only if it gives every id of it. */
function run(plan: FetchPlan, gives: (id: Oid) => boolean): (readonly Oid[])[] {
  const requests: (readonly Oid[])[] = [];
  for (let asked = plan.next(); asked; asked = plan.next()) {
    requests.push(asked);
    plan.report(asked.every(gives) ? "arrived" : "refused");
  }
  return requests;
}

test("advertised ids are asked for in one request, at most eight others in a second", () => {
  const plan = new FetchPlan(ids(0, 120), new Set(ids(0, 100)), limits);
  const requests = run(plan, () => true);
  assert.deepEqual(requests, [ids(0, 100), ids(100, 108)]);
  assert.deepEqual(plan.arrived, ids(0, 108));
});

test("nothing advertised and nothing needed make no request", () => {
  assert.equal(new FetchPlan([], new Set(ids(0, 5)), limits).next(), undefined);
});

test("a refused set is halved until the missing id stands alone; the others arrive", () => {
  const plan = new FetchPlan(ids(0, 8), new Set(), limits);
  const requests = run(plan, (id) => id !== oid(5));
  assert.deepEqual(
    requests.map((request) => request.length),
    [8, 4, 4, 2, 1, 1, 2],
  );
  assert.deepEqual(plan.refused, [oid(5)]);
  assert.deepEqual(new Set(plan.arrived), new Set(ids(0, 8).filter((id) => id !== oid(5))));
});

test("an advertisement that was a lie is halved as well", () => {
  const plan = new FetchPlan(ids(0, 4), new Set(ids(0, 4)), limits);
  run(plan, (id) => id !== oid(0));
  assert.deepEqual(plan.refused, [oid(0)]);
  assert.deepEqual(plan.arrived, [2, 3, 1].map(oid).toSorted());
});

test("any other failure ends the plan and keeps what arrived", () => {
  const plan = new FetchPlan(ids(0, 4), new Set(ids(0, 2)), limits);
  plan.next();
  plan.report("arrived");
  plan.next();
  plan.report("failed");
  assert.equal(plan.next(), undefined);
  assert.deepEqual(plan.arrived, ids(0, 2));
  assert.deepEqual(plan.refused, []);
});

test("a server that answers 'not our ref' for ever gets no more requests than allowed", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 }),
      fc.integer({ min: 0, max: 40 }),
      fc.nat(12),
      (needed, offered, requests) => {
        const plan = new FetchPlan(ids(0, needed), new Set(ids(0, offered)), { requests, unadvertised: 8 });
        assert.ok(run(plan, () => false).length <= requests);
        assert.deepEqual(plan.arrived, []);
      },
    ),
  );
});

test("with requests enough, every id a server gives arrives and every other is known as refused", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(30), { maxLength: 12 }), fc.nat(30), (given, offered) => {
      const has = new Set(given.map(oid));
      const needed = ids(0, 30);
      const plan = new FetchPlan(needed, new Set(ids(0, offered)), { requests: 1_000, unadvertised: 8 });
      const asked = new Set([...needed.filter((_, index) => index < offered), ...needed.slice(offered).slice(0, 8)]);
      run(plan, (id) => has.has(id));
      assert.deepEqual(new Set(plan.arrived), new Set([...asked].filter((id) => has.has(id))));
      assert.deepEqual(new Set(plan.refused), new Set([...asked].filter((id) => !has.has(id))));
    }),
  );
});

test("using the planner out of turn is a bug", () => {
  const plan = new FetchPlan(ids(0, 2), new Set(), limits);
  assert.throws(() => plan.report("arrived"));
  plan.next();
  assert.throws(() => plan.next());
});
