import assert from "node:assert/strict";
import { test } from "node:test";
import { defaultConfig } from "../config/testing/default-config.js";
import { NaughtyList } from "./health.js";

const minute = 60_000;

const naughtyList = (maxPlaces?: number): NaughtyList<string> =>
  new NaughtyList(defaultConfig(), ["dns-missing", "certificate", "x", "y"], "dns-missing", maxPlaces);

test("three lasting failures of one kind over ten minutes are naughty for twelve hours, then re-armed", () => {
  const places = naughtyList();
  assert.equal(places.failed("a", "a", "certificate", 0), undefined);
  assert.equal(places.failed("a", "a", "certificate", 5 * minute), undefined);
  assert.deepEqual(places.failed("a", "a", "certificate", 10 * minute), {
    place: "a",
    kind: "certificate",
    untilMs: 10 * minute + 12 * 60 * minute,
  });
  assert.equal(places.isNaughty("a", 10 * minute + 12 * 60 * minute - 1), true);
  assert.equal(places.isNaughty("a", 10 * minute + 12 * 60 * minute), false);
  assert.equal(places.failed("a", "a", "certificate", 800 * minute), undefined);
});

test("many failures within ten minutes are not naughty yet", () => {
  const places = naughtyList();
  for (let second = 0; second < 599; second++) assert.equal(places.failed("a", "a", "x", second * 1_000), undefined);
  assert.notEqual(places.failed("a", "a", "x", 600_000), undefined);
});

test("another kind of failure, or one success, starts the count again", () => {
  const places = naughtyList();
  places.failed("a", "a", "x", 0);
  places.failed("a", "a", "x", 5 * minute);
  places.failed("a", "a", "y", 6 * minute);
  assert.equal(places.failed("a", "a", "x", 11 * minute), undefined);
  places.failed("b", "b", "x", 0);
  places.failed("b", "b", "x", 5 * minute);
  places.worked("b");
  assert.equal(places.failed("b", "b", "x", 11 * minute), undefined);
});

test("names that fail in the same minute as another's are our resolver's fault, the first of them too", () => {
  const places = naughtyList();
  for (const at of [0, 5 * minute, 11 * minute, 20 * minute]) {
    assert.equal(places.failed("a", "a", "dns-missing", at), undefined);
    assert.equal(places.failed("b", "b", "dns-missing", at + 30_000), undefined);
  }
  assert.deepEqual(places.entries(20 * minute), []);
});

test("a temporary failure elsewhere in the same minute protects a name as well", () => {
  const places = naughtyList();
  for (const at of [0, 5 * minute, 11 * minute]) {
    places.failed("b", "b", "dns-temporary", at);
    assert.equal(places.failed("a", "a", "dns-missing", at + 1_000), undefined);
  }
});

test("a name that alone does not exist becomes naughty", () => {
  const places = naughtyList();
  places.failed("a", "a", "dns-missing", 0);
  places.failed("a", "a", "dns-missing", 5 * minute);
  assert.notEqual(places.failed("a", "a", "dns-missing", 10 * minute), undefined);
});

test("the list is bounded, survives a restart and can be forgiven", () => {
  const places = naughtyList(3);
  for (const place of ["a", "b", "c", "d"]) places.restore({ place, kind: "x", untilMs: 100 }, 0);
  assert.deepEqual(
    places.entries(0).map((entry) => entry.place),
    ["b", "c", "d"],
  );
  assert.equal(places.forgive("c"), true);
  assert.equal(places.isNaughty("c", 0), false);
});

// event-sync.md asks for three failures of one kind, for a monotonic clock, and that our own trouble is not a host's.
type Happening = readonly [what: string, atMinute: number, host?: string];
const cases: readonly { readonly what: string; readonly told: readonly Happening[]; readonly banned?: number }[] = [
  {
    what: "a time-out between",
    told: [
      ["certificate", 0],
      ["certificate", 5],
      ["timeout", 8],
      ["certificate", 11],
    ],
  },
  {
    what: "a temporary DNS failure between",
    told: [
      ["dns-missing", 0],
      ["dns-missing", 5],
      ["dns-temporary", 8],
      ["dns-missing", 11],
    ],
  },
  {
    what: "an answer between",
    told: [
      ["certificate", 0],
      ["certificate", 5],
      ["answer", 8],
      ["certificate", 11],
    ],
  },
  {
    what: "an hour in which we stood still between",
    told: [
      ["certificate", 0],
      ["certificate", 1],
      ["stood still", 60],
      ["certificate", 62],
    ],
  },
  {
    what: "another lasting failure between",
    told: [
      ["certificate", 0],
      ["certificate", 5],
      ["dns-missing", 8],
      ["certificate", 11],
    ],
  },
  {
    what: "another name failed in the minute of the first",
    told: [
      ["dns-missing", 0],
      ["dns-missing", 0.5, "other"],
      ["dns-missing", 5],
      ["dns-missing", 10],
      ["dns-missing", 16],
    ],
    banned: 16,
  },
  {
    what: "another name failed in the minute of the second",
    told: [
      ["dns-missing", 0],
      ["dns-missing", 5],
      ["dns-missing", 5.5, "other"],
      ["dns-missing", 10],
      ["dns-missing", 16],
    ],
    banned: 16,
  },
  {
    what: "two places of one host are not two names",
    told: [
      ["dns-missing", 0],
      ["dns-missing", 5],
      ["dns-missing", 10],
    ],
    banned: 10,
  },
];

for (const { what, told, banned } of cases) {
  test(`one rule for relays and git hosts: ${what}`, () => {
    const places = naughtyList();
    let bannedAt: number | undefined;
    for (const [happening, at, host = "a"] of told) {
      if (happening === "answer") places.worked(host);
      else if (happening === "stood still") places.stoodStill(at * minute);
      else {
        places.failed(`${host}/second`, host, happening, at * minute - 1);
        if (places.failed(host, host, happening, at * minute)) bannedAt ??= at;
      }
    }
    assert.equal(bannedAt, banned);
  });
}

test("a ban ends by the monotonic clock, and one that was kept lasts no longer than a ban", () => {
  const places = naughtyList();
  places.restore({ place: "a", kind: "x", untilMs: 9_000 * minute }, 0);
  assert.equal(places.untilMs("a"), 720 * minute);
  places.worked("a");
  assert.equal(places.isNaughty("a", 720 * minute - 1), true);
  assert.equal(places.isNaughty("a", 720 * minute), false);
});

test("a resolver that fails for thousands of names makes none of them naughty", () => {
  const places = naughtyList();
  for (let n = 0; n < 5_000; n++) assert.equal(places.failed(`${n}`, `${n}`, "dns-missing", 10 * minute), undefined);
  assert.deepEqual(places.entries(0), []);
});
