import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmod, mkdir, mkdtemp, open, readdir, rename, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { DirectoryPackStore, faultOfCode } from "./directory.js";
import { markFile, mustBeStoredName, readMark } from "./port.js";
import { isName, type StoreForTests, testPackStore, wrongNames } from "./testing/contract.js";

async function directoryForTests(): Promise<StoreForTests> {
  const parent = await mkdtemp(join(tmpdir(), "holdfast-store-"));
  const root = join(parent, "packs");
  await mkdir(root);
  return {
    manyFiles: 100,
    open: async () => new DirectoryPackStore(root),
    // What an unmounted file system leaves is an empty folder.
    async takeAway() {
      await rename(root, join(parent, "away"));
      await mkdir(root);
      return async () => {
        await rm(root, { recursive: true });
        await rename(join(parent, "away"), root);
      };
    },
    close: () => rm(parent, { recursive: true, force: true }),
  };
}

testPackStore("a directory", directoryForTests);

describe("names in the pack store", () => {
  for (const text of wrongNames) {
    it(`${JSON.stringify(text.slice(0, 40))} is no name`, () => assert.equal(isName(text), false));
  }
  it("a repository's pack and a snapshot have names", () => {
    assert.ok(isName(`main/npub1${"q".repeat(58)}/=c3bc/${"0".repeat(64)}.pack`));
    assert.ok(isName("snapshots/view-1-2-00000000-0000-0000-0000-000000000000-aa.mdb"));
  });
});

describe("a directory as a pack store", () => {
  it("tells faults of the file system apart", () => {
    const table = {
      ENOSPC: "full",
      EDQUOT: "full",
      EACCES: "refused",
      EROFS: "refused",
      ESTALE: "unreachable",
      EIO: "unreachable",
    };
    for (const [code, fault] of Object.entries(table)) assert.equal(faultOfCode(code), fault, code);
  });

  it("reads no mark out of something else", () => {
    for (const text of ["", "{}", "[]", "null", '{"cluster":"a","token":"b"}'])
      assert.equal(readMark(text), undefined, text);
  });

  it("is unreachable when the folder is not there, and refused when its mark is damaged", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-store-"));
    await assert.rejects(new DirectoryPackStore(join(folder, "none")).mark(), { fault: "unreachable" });
    await writeFile(join(folder, markFile), "{");
    await assert.rejects(new DirectoryPackStore(folder).mark(), { fault: "refused" });
    await rm(folder, { recursive: true });
  });

  for (const [how, take, leaves] of [
    ["goes", (folder: string) => rename(folder, `${folder}-away`), undefined],
    ["is another one", (folder: string) => rm(join(folder, markFile)), [".aside", "main"]],
  ] as const) {
    it(`a store that ${how} while a file is put has not got it, and its directory is not made anew`, async () => {
      const parent = await mkdtemp(join(tmpdir(), "holdfast-store-"));
      const [folder, pipe] = [join(parent, "store"), join(parent, "pipe")];
      await mkdir(folder);
      const store = new DirectoryPackStore(folder);
      await store.setMark({ cluster: "a", token: "b" });
      // Reading it goes on until whoever writes to it has closed it.
      execFileSync("mkfifo", [pipe]);
      const putting = assert.rejects(store.put(mustBeStoredName(`main/npub1/x/${"0".repeat(64)}.pack`), pipe), {
        fault: "unreachable",
      });
      const writer = await open(pipe, "w");
      await writer.write("half of it");
      while ((await readdir(join(folder, ".aside"))).length === 0) await turn();
      await take(folder);
      await writer.close();
      await putting;
      assert.deepEqual(await readdir(folder).catch(() => undefined), leaves);
      await rm(parent, { recursive: true });
    });
  }

  it("keeps what is being put and removes what was left for longer, and no folder stays empty", async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-store-"));
    const store = new DirectoryPackStore(folder);
    const cluster = "00000000-0000-0000-0000-000000000000";
    await store.setMark({ cluster, token: cluster });
    await mkdir(join(folder, ".aside"));
    for (const [name, seconds] of [
      ["old", 1_000],
      ["new", 9_000],
    ] as const) {
      await writeFile(join(folder, ".aside", name), "1");
      await utimes(join(folder, ".aside", name), seconds, seconds);
    }
    assert.equal(await store.removeUnfinished(5_000_000), 1);
    assert.deepEqual(await readdir(join(folder, ".aside")), ["new"]);
    const file = join(folder, ".aside", "new");
    await store.put(mustBeStoredName("a/b/c"), file);
    await store.remove(mustBeStoredName("a/b/c"));
    assert.deepEqual((await readdir(folder)).sort(), [".aside", markFile]);
    await rm(folder, { recursive: true });
  });

  it("says refused where this user may not write", {
    skip: process.getuid?.() === 0 && "root may write anywhere",
  }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "holdfast-store-"));
    const store = new DirectoryPackStore(folder);
    await chmod(folder, 0o500);
    const cluster = "00000000-0000-0000-0000-000000000000";
    await assert.rejects(store.setMark({ cluster, token: cluster }), { fault: "refused" });
    await chmod(folder, 0o700);
    await rm(folder, { recursive: true });
  });
});
