import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { open } from "lmdb";
import { hasGlibc } from "../../base/testing/has-glibc.js";
import { rangesOf, readingAhead, readsAhead } from "./read-ahead.js";

test("what lies around a page is read with it as long as the file fits into memory", () => {
  assert.deepEqual([readsAhead(0, 100), readsAhead(100, 100), readsAhead(101, 100)], [true, true, false]);
});

test("where a file is mapped is told by its name, with spaces, each range once, and others not", () => {
  const maps = [
    "7f0000000000-7f0000400000 r--s 00000000 fd:00 131 /data/my store/events-1.mdb",
    "7f0000500000-7f0000501000 rw-s 00000000 fd:00 132 /data/my store/events-1.mdb-lock",
    "7f0000600000-7f0000700000 r--s 00400000 fd:00 131 /data/my store/events-1.mdb",
    "7f0000800000-7f0000900000 rw-p 00000000 00:00 0 ",
    "",
  ].join("\n");
  assert.deepEqual(rangesOf(maps, "/data/my store/events-1.mdb"), [
    { start: 0x7f0000000000n, bytes: 0x400000n },
    { start: 0x7f0000600000n, bytes: 0x100000n },
  ]);
});

/** Linux marks ranges of which single pages are read with "rr". */
function isReadSingly(file: string): boolean {
  const parts = readFileSync("/proc/self/smaps", "latin1").split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/);
  const flags = parts
    .filter((part) => part.split("\n")[0]?.endsWith(` ${file}`))
    .map((part) => /VmFlags:.*/.exec(part));
  assert.ok(flags.length > 0, "the file is mapped");
  return flags.every((flag) => flag?.[0].includes(" rr"));
}

test("a file that was opened without is read ahead while it is copied, and not before and after", {
  skip: !hasGlibc && "no glibc",
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-ahead-"));
  const path = join(folder, "events.mdb");
  const options = { path, noSubdir: true, noReadAhead: true };
  const database = open(options);
  try {
    await database.put("a", "b");
    assert.equal(isReadSingly(path), true);
    assert.equal(await readingAhead(path, async () => isReadSingly(path)), false);
    assert.equal(isReadSingly(path), true);
    await assert.rejects(
      readingAhead(path, () => Promise.reject(new Error("no space"))),
      /no space/,
    );
    assert.equal(isReadSingly(path), true);
  } finally {
    await database.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
