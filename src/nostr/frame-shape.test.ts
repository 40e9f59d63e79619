import assert from "node:assert/strict";
import { test } from "node:test";
import { assertLinear, uglyShapes } from "../base/testing/linear-time.js";
import { frameFault } from "./frame-shape.js";

const bounds = { maxDepth: 4, maxKeys: 10, maxItems: 5_000 };
const filling = `"${"x".repeat(10_000)}"`;

test("a large frame is not parsed when it is too deep, has too many keys or values; small ones and good ones are", () => {
  const cases: [name: string, text: string, fault: RegExp | undefined][] = [
    ["an event", `["EVENT",{"tags":[["a",${filling}]]}]`, undefined],
    ["five deep", `[[[[[${filling}]]]]]`, /nested at most 4/],
    ["four deep, again and again", `[${"[[[]]],".repeat(1_000)}${filling}]`, undefined],
    ["keys", `[{${'"a":1,'.repeat(11)}"b":${filling}}]`, /10 keys/],
    ["values", `[${"0,".repeat(5_001)}0]`, /5000 values/],
    ["lists", `[${"[]".repeat(5_001)}]`, /5000 values/],
    ["brackets, colons and commas in a string", `["${"[{:,".repeat(5_000)}"]`, undefined],
    ["a quote in a string", `["${'\\"[[[[[['.repeat(2_000)}"]`, undefined],
    ["a backslash before the end of a string", `["${"\\\\".repeat(5_000)}",[[[[[]]]]]]`, /nested/],
    ["a string that does not end", `["${"[".repeat(20_000)}`, undefined],
    ["small and deep", "[".repeat(8_000), undefined],
  ];
  for (const [name, text, fault] of cases) {
    const found = frameFault(text, bounds);
    if (fault) assert.match(found ?? "", fault, name);
    else assert.equal(found, undefined, name);
  }
});

test("threat 32: what a frame is made of is found out in linear time", () => {
  const most = { maxDepth: 1e9, maxKeys: 1e9, maxItems: 1e9 };
  for (const [name, shape] of uglyShapes) {
    assertLinear(
      name,
      (chars) => `["${shape(chars)}`,
      (frame) => frameFault(frame, most),
    );
    assertLinear(
      name,
      (chars) => shape(chars),
      (frame) => frameFault(frame, most),
    );
  }
});
