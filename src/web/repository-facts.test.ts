import assert from "node:assert/strict";
import { test } from "node:test";
import { compareRefs } from "./repository-facts.js";

const [one, two] = ["1".repeat(40), "2".repeat(40)];
const held = (refs: Record<string, string>) => new Map(Object.entries(refs).map(([name, oid]) => [name, { oid }]));
const signed = (refs: Record<string, string>) => Object.entries(refs).map(([name, value]) => ({ name, value }));

const rows: [string, Record<string, string> | undefined, Record<string, string>, string, string[]][] = [
  ["all as signed", { "refs/heads/main": one }, { "refs/heads/main": one }, "complete", ["main equal"]],
  ["another commit", { "refs/heads/main": one }, { "refs/heads/main": two }, "differs", ["main differs"]],
  [
    "signed and not here",
    { "refs/heads/main": one, "refs/heads/x": two },
    { "refs/heads/main": one },
    "partial",
    ["main equal", "x missing"],
  ],
  [
    "here and not signed",
    { "refs/heads/main": one },
    { "refs/heads/main": one, "refs/tags/v1": two },
    "differs",
    ["main equal", "v1 unsigned"],
  ],
  ["nothing signed yet", undefined, {}, "none", []],
  ["signed to be empty", {}, {}, "complete", []],
  [
    "other refs are nobody's business",
    { "refs/heads/main": one },
    { "refs/heads/main": one, "refs/nostr/x": two },
    "complete",
    ["main equal"],
  ],
];

for (const [name, state, here, overall, refs] of rows) {
  test(`the signed state against what is held: ${name}`, async () => {
    const comparison = await compareRefs(state && signed(state), held(here), "refs/heads/main");
    assert.equal(comparison.overall, overall);
    assert.deepEqual(
      comparison.refs.map(({ name: ref, standing }) => `${ref} ${standing}`),
      refs,
    );
  });
}

test("the head comes first, then branches, then tags, numbers in order", async () => {
  const refs = { "refs/tags/v10": one, "refs/tags/v9": one, "refs/heads/a": one, "refs/heads/trunk": one };
  const compared = await compareRefs(signed(refs), held(refs), "refs/heads/trunk");
  const names = compared.refs.map(({ name }) => name);
  assert.deepEqual(names, ["trunk", "a", "v9", "v10"]);
});
