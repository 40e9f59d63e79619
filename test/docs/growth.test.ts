// The curves of the documentation: how they are reckoned and drawn, and that those shown are drawn from the points kept beside them.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import {
  type Growth,
  growsTooFast,
  lastExponent,
  type Place,
  type Point,
  placesOf,
  readPoints,
  type Series,
  tableOf,
  withPoint,
} from "../../bench/growth/curve.js";
import { decadesAround, partOf, pictureOf, shortNumber } from "../../bench/growth/plot.js";
import { curves, docsFolder, pictureOfCurve } from "../../bench/growth/run.js";

test("growth between the last two sizes tells whether a cost outgrows its work", () => {
  const cases: readonly (readonly [string, readonly Place[], Series["work"], number | undefined, boolean])[] = [
    [
      "a fixed cost",
      [
        [10, 5],
        [100, 5],
      ],
      "one",
      0,
      false,
    ],
    [
      "the depth of a tree",
      [
        [1e6, 20],
        [1e7, 23],
      ],
      "one",
      0.06,
      false,
    ],
    [
      "a scan for one question",
      [
        [10, 5],
        [100, 50],
      ],
      "one",
      1,
      true,
    ],
    [
      "something for each",
      [
        [10, 5],
        [100, 50],
      ],
      "each",
      1,
      false,
    ],
    [
      "a fixed cost hides nothing",
      [
        [1, 100],
        [10, 110],
        [100, 11_000],
      ],
      "each",
      2,
      true,
    ],
    ["one place says nothing", [[10, 5]], "one", undefined, false],
    [
      "less and less",
      [
        [10, 50],
        [1_000, 5],
      ],
      "each",
      -0.5,
      false,
    ],
  ];
  for (const [name, places, work, expected, isTooFast] of cases) {
    const exponent = lastExponent(places);
    assert.equal(exponent === undefined ? undefined : Number(exponent.toFixed(2)), expected, name);
    assert.equal(exponent !== undefined && growsTooFast(exponent, work), isTooFast, name);
  }
});

test("a point that is measured again replaces its values and no others, and points are in the order of sizes", () => {
  const first: Point[] = [{ curve: "events", size: 1_000, values: { start: 5, memory: 7 } }];
  const later = withPoint(withPoint(first, { curve: "events", size: 100, values: { start: 4 } }), {
    curve: "events",
    size: 1_000,
    values: { start: 6 },
  });
  assert.deepEqual(later, [
    { curve: "events", size: 100, values: { start: 4 } },
    { curve: "events", size: 1_000, values: { start: 6, memory: 7 } },
  ]);
  assert.deepEqual(placesOf(later, "events", "start"), [
    [100, 4],
    [1_000, 6],
  ]);
  assert.deepEqual(placesOf(later, "events", "memory"), [[1_000, 7]], "what was not measured has no place");
  assert.deepEqual(placesOf([{ curve: "a", size: 1, values: { b: 0 } }], "a", "b"), [], "zero has none on a log scale");
});

test("axes are whole powers of ten around what is shown", () => {
  const cases: readonly (readonly [readonly number[], number, number])[] = [
    [[1, 100], 0, 2],
    [[3, 40], 0, 2],
    [[1_000, 1_000], 3, 4],
    [[0.02, 0.5], -2, 0],
    [[999, 1_001], 2, 4],
  ];
  for (const [values, from, to] of cases) assert.deepEqual(decadesAround(values), { from, to }, String(values));
  assert.equal(partOf({ from: 1, to: 3 }, 100), 0.5);
  const texts = [0.001, 0.5, 10, 999, 1_000, 250_000, 10_000_000, 3e9].map(shortNumber);
  assert.deepEqual(texts, ["0.001", "0.5", "10", "999", "1k", "250k", "10M", "3G"]);
});

const growthOf = (name: string, places: readonly Place[], work: Series["work"] = "one"): Growth => {
  const exponent = lastExponent(places);
  return {
    series: { name, unit: "ms", work },
    places,
    exponent,
    isTooFast: exponent !== undefined && growsTooFast(exponent, work),
  };
};

test("a picture has axes with their names, a line for the cost, a dashed one for the work, and no background", () => {
  const flat = growthOf('a < b & "c"', [
    [10, 5],
    [1_000, 5],
  ]);
  const steep = growthOf("steep", [
    [10, 5],
    [1_000, 500],
  ]);
  const picture = pictureOf("Cost", "things", [flat, steep, growthOf("never measured", [])]);
  assert.match(picture, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 628 244"/);
  assert.ok(picture.includes("a &lt; b &amp; &quot;c&quot;"), "words are words, whatever they hold");
  assert.ok(!picture.includes("never measured"));
  assert.equal([...picture.matchAll(/<polyline /g)].length, 2);
  assert.equal([...picture.matchAll(/stroke-dasharray/g)].length, 2);
  assert.equal([...picture.matchAll(/>things</g)].length, 2, "each has its axis named");
  assert.match(picture, /ms, grows as n\^0\.00/);
  assert.match(picture, /ms, grows as n\^1\.00/);
  assert.equal([...picture.matchAll(/stroke="#e5534b"/g)].length, 1, "what grows too fast is red");
  assert.doesNotMatch(picture, /<rect|#000|#fff|black|white/);
  assert.doesNotMatch(picture, /NaN|Infinity|undefined/);
});

test("one place alone is drawn as a dot without lines between", () => {
  const picture = pictureOf("Cost", "things", [growthOf("one", [[10, 5]])]);
  assert.match(picture, /<circle /);
  assert.doesNotMatch(picture, /<polyline|stroke-dasharray|grows as|NaN|Infinity/);
});

test("a table shows what was measured at each size and leaves the rest empty", () => {
  const points: Point[] = [
    { curve: "c", size: 10, values: { a: 1.234 } },
    { curve: "c", size: 100, values: { a: 12.34, b: 1_234.5 } },
  ];
  const series: Series[] = [
    { name: "a", unit: "ms", work: "each" },
    { name: "b", unit: "bytes", work: "one" },
    { name: "never", unit: "ms", work: "one" },
  ];
  assert.equal(
    tableOf(points, { name: "c", of: "things", series }),
    "| cost at so many things | 10 | 100 | grows as | work |\n| --- | --- | --- | --- | --- |\n" +
      "| a, ms | 1.2 | 12.3 | n^1.00 | n |\n| b, bytes |  | 1,235 |  | 1 |\n",
  );
});

for (const curve of curves) {
  test(`the picture and the table of ${curve.name} are those of the points that are kept`, () => {
    const points = readPoints(join(docsFolder, "points.json"));
    assert.equal(readFileSync(join(docsFolder, `${curve.name}.svg`), "utf8"), pictureOfCurve(curve, points));
    const page = readFileSync(join(docsFolder, "..", "benchmarks.md"), "utf8");
    assert.ok(page.includes(tableOf(points, curve)), "npm run bench -- growth --plot prints it");
    assert.ok(page.includes(`(growth/${curve.name}.svg)`));
  });
}
