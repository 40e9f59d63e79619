import assert from "node:assert/strict";
import { test } from "node:test";
import { Folder } from "../../git/reading/objects.js";
import type { RefTable } from "../../git/ref-tables.js";
import type { Pubkey } from "../../nostr/event.js";
import { npubOf } from "../../nostr/nip19.js";
import type { Oid, RefName } from "../../nostr/nip34.js";
import { comparedOf } from "./compare-page.js";
import { codePathOf, decodeSegment, encodeSegment, placeOf, redirectOf, refInAddress, startPlace } from "./paths.js";

const [one, two, three, four] = ["1", "2", "3", "4"].map((digit) => digit.repeat(40) as Oid) as [Oid, Oid, Oid, Oid];

const tableOf = (refs: Record<string, Oid | { oid: Oid; peeled: Oid }>, head = "refs/heads/main"): RefTable => ({
  refs: new Map(
    Object.entries(refs).map(([name, value]) => [
      name as RefName,
      typeof value === "string" ? { oid: value, peeled: undefined } : value,
    ]),
  ),
  head: head as RefName,
  format: "sha1",
  version: 1,
  generation: 1,
});

const table = tableOf({
  "refs/heads/main": one,
  "refs/heads/feature/deep": two,
  "refs/heads/-x": two,
  [`refs/heads/${four}`]: two,
  "refs/heads/refs/heads/main": three,
  "refs/nostr/secret": four,
  "refs/tags/feature": three,
  "refs/tags/main": three,
  "refs/tags/v1": { oid: four, peeled: three },
});

const segments = (text: string): Buffer[] => text.split("/").map((part) => Buffer.from(part));

const rows: [address: string, found: string | undefined][] = [
  ["HEAD", `head refs/heads/main ${one}`],
  ["HEAD/src/a", `head refs/heads/main ${one} src/a`],
  ["main", `branch refs/heads/main ${one}`],
  ["main/src", `branch refs/heads/main ${one} src`],
  ["feature/deep/src/x", `branch refs/heads/feature/deep ${two} src/x`],
  // The longest beginning that is a branch comes first, then a tag.
  ["feature/other", `tag refs/tags/feature ${three} other`],
  ["v1/x", `tag refs/tags/v1 ${three} x`],
  ["refs/tags/main/x", `tag refs/tags/main ${three} x`],
  ["refs/heads/main", `branch refs/heads/main ${one}`],
  ["refs/heads/refs/heads/main", `branch refs/heads/refs/heads/main ${three}`],
  [`${two}/src`, `commit undefined ${two} src`],
  // An id is an id, even where a branch has its name.
  [four, `commit undefined ${four}`],
  ["-x", `branch refs/heads/-x ${two}`],
  ["refs/nostr/secret", undefined],
  ["nostr/secret", undefined],
  ["--output=x", undefined],
  ["main..feature", undefined],
  ["nothing", undefined],
];

test("the beginning of a path that is a ref is found as the refs there are say", () => {
  for (const [address, expected] of rows) {
    const place = placeOf(table, segments(address));
    const path = place?.path.map(String).join("/");
    const found = place && `${place.kind} ${place.ref} ${place.commit}${path ? ` ${path}` : ""}`;
    assert.equal(found, expected, address);
  }
  assert.equal(placeOf(tableOf({}), segments("HEAD")), undefined);
});

test("a ref's address is short where that means the ref, and whole where it would mean another", () => {
  for (const [ref, address] of [
    ["refs/heads/main", "main"],
    ["refs/heads/feature/deep", "feature/deep"],
    ["refs/tags/v1", "v1"],
    ["refs/tags/main", "refs/tags/main"],
    [`refs/heads/${four}`, `refs/heads/${four}`],
    ["refs/heads/refs/heads/main", "refs/heads/refs/heads/main"],
  ] as const) {
    assert.equal(refInAddress(table, ref as RefName), address);
  }
});

test("the first page shows the head, or another branch while the head has no commit", () => {
  assert.equal(startPlace(table)?.ref, "refs/heads/main");
  assert.equal(startPlace(tableOf({ "refs/heads/b": one, "refs/tags/a": two }))?.ref, "refs/heads/b");
  assert.equal(startPlace(tableOf({ "refs/tags/a": two })), undefined);
});

test("segments are bytes, each decoded once; a slash, a zero byte or a broken escape is no name", () => {
  assert.deepEqual(decodeSegment("a%20%FF"), Buffer.from([0x61, 0x20, 0xff]));
  assert.deepEqual(decodeSegment("%252F"), Buffer.from("%2F"));
  for (const bad of ["a%2Fb", "%2f", "%00", "%", "%4", "%zz", "\u0100"])
    assert.equal(decodeSegment(bad), undefined, bad);
  for (let byte = 1; byte < 256; byte++) {
    if (byte === 0x2f) continue;
    const name = Buffer.from([0x61, byte, 0x62]);
    const encoded = encodeSegment(name);
    assert.match(encoded, /^[!-~]+$/);
    assert.doesNotMatch(encoded, /["&<>#?/\\]/);
    assert.deepEqual(decodeSegment(encoded), name);
  }
});

test("a page's path has no empty names and is not endless", () => {
  assert.deepEqual(codePathOf("tree/main/a%20b"), {
    page: "tree",
    segments: [Buffer.from("main"), Buffer.from("a b")],
  });
  assert.deepEqual(codePathOf("branches"), { page: "branches", segments: [] });
  for (const bad of ["tree/main//a", "tree/main%2Fa", `tree/${"a/".repeat(400)}a`]) {
    assert.equal(codePathOf(bad), undefined, bad.slice(0, 30));
  }
});

test("a comparison is split at the first three dots", () => {
  const split = (text: string): string | undefined =>
    comparedOf(segments(text))
      ?.map((part) => part.map(String).join("/"))
      .join(" | ");
  assert.equal(split("main...feature/deep"), "main | feature/deep");
  assert.equal(split("a/b...c...d"), "a/b | c...d");
  for (const bad of ["main", "main..x", "...x", "main..."]) assert.equal(split(bad), undefined, bad);
});

test("slips lead to the address that was meant, by their text alone", () => {
  const npub = npubOf("ab".repeat(32) as Pubkey);
  for (const [slip, meant] of [
    [`/${npub}/x`, `/${npub}/x.git`],
    [`/${npub}/x/`, `/${npub}/x.git`],
    [`/${npub}/x.git/`, `/${npub}/x.git`],
    [`/${npub}/x.git//`, `/${npub}/x.git`],
    [`/${npub}/x.git/tree/main/`, `/${npub}/x.git/tree/main`],
    [`/${npub}/x/tree/main`, `/${npub}/x.git/tree/main`],
    [`/${npub}/x/info/refs`, `/${npub}/x.git/info/refs`],
    [`/${npub}/x.git`, undefined],
    [`/${npub}/x.git/tree/main`, undefined],
    [`/${npub}`, undefined],
    [`/${npub}/`, undefined],
    [`/${npub}/..`, undefined],
    [`/${npub}/../../${npub}/x.git/info/refs`, undefined],
    [`/${npub}/x/%2e%2E/y`, undefined],
    ["/npub1x/x", undefined],
    ["//evil.example/x", undefined],
    [`/prs/${npub}/x`, undefined],
    ["/assets/x", undefined],
  ] as const) {
    assert.equal(redirectOf(slip), meant, slip);
  }
});

test("of 100,000 branches one is found by its name, and a page offers only some", () => {
  const many = tableOf(
    Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`refs/heads/b${index}/x`, one])),
    "refs/heads/none",
  );
  for (let index = 0; index < 20_000; index++) {
    const found = placeOf(many, segments(`b${index * 5}/x/${"d/".repeat(20)}f`));
    assert.equal(found?.ref, `refs/heads/b${index * 5}/x`);
  }
  assert.equal(placeOf(many, segments("b1/y")), undefined);
  assert.equal(startPlace(many)?.label, "b0/x");
});

test("an entry is found in a folder of 100,000", async () => {
  const tree = Buffer.concat(
    Array.from({ length: 100_000 }, (_, index) =>
      Buffer.concat([Buffer.from(`100644 f${String(index).padStart(6, "0")}\0`), Buffer.alloc(20, 1)]),
    ),
  );
  const folder = await Folder.of(tree, one);
  assert.equal(folder.count, 100_000);
  for (let index = 0; index < 100_000; index += 7) {
    const name = `f${String(index).padStart(6, "0")}`;
    assert.equal(String(folder.find(Buffer.from(name))?.name), name);
  }
  assert.deepEqual(
    folder.slice(99_999, 200_000).map(({ name }) => String(name)),
    ["f099999"],
  );
});
