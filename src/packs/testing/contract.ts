// What every pack store promises (port.ts), as tests. Run for the directory beside it, for S3 in test/cluster.

import assert from "node:assert/strict";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { mustBeStoredName, type PackStore, PackStoreError, type StoredName, storedName } from "../port.js";

export interface StoreForTests {
  /** More files than it lists at once. */
  readonly manyFiles: number;
  /** Empty, and without a mark. */
  open(): Promise<PackStore>;
  /** Makes what `open` gave last unreachable, as when a mount or the service is gone; answers how to bring it back. */
  takeAway(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

const digestOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const isFault =
  (fault: string) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof PackStoreError, String(error));
    assert.equal(error.fault, fault, error.message);
    return true;
  };

export function testPackStore(kind: string, prepare: () => Promise<StoreForTests>): void {
  describe(`the pack store as ${kind}`, () => {
    let tests: StoreForTests;
    let store: PackStore;
    let folder: string;
    const mark = { cluster: randomUUID(), token: randomUUID() };
    const name = (text: string): StoredName => mustBeStoredName(text);
    const local = (): string => join(folder, randomUUID());

    async function put(stored: string, bytes: Buffer): Promise<void> {
      const file = local();
      await writeFile(file, bytes);
      assert.deepEqual(await store.put(name(stored), file), { bytes: bytes.length, sha256: digestOf(bytes) });
    }

    async function namesBelow(below?: string): Promise<string[]> {
      const names: string[] = [];
      const listed = store.list(below === undefined ? undefined : mustBeStoredName(below, 1));
      for await (const file of listed) names.push(file.name);
      return names.sort();
    }

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "holdfast-packs-"));
      tests = await prepare();
      store = await tests.open();
    });
    after(async () => {
      await store.close();
      await tests.close();
      await rm(folder, { recursive: true, force: true });
    });

    it("takes nothing before a cluster has marked it, and tells who did", async () => {
      const file = local();
      await writeFile(file, "x");
      assert.equal(await store.mark(), undefined);
      await assert.rejects(store.put(name("main/a"), file), isFault("unreachable"));
      await store.setMark(mark);
      assert.deepEqual(await store.mark(), mark);
    });

    it("gives back a file byte for byte with its digest, whatever its size", async () => {
      for (const size of [0, 1, 70_000, 12_000_000]) {
        const bytes = randomBytes(size);
        await put(`sizes/${size}`, bytes);
        const file = local();
        assert.deepEqual(await store.fetch(name(`sizes/${size}`), file), {
          bytes: size,
          sha256: digestOf(bytes),
        });
        assert.ok((await readFile(file)).equals(bytes), `${size} bytes came back different`);
      }
    });

    it("has the newer file when a name is put again", async () => {
      await put("again/a.pack", Buffer.from("old"));
      await put("again/a.pack", Buffer.from("newer"));
      const file = local();
      await store.fetch(name("again/a.pack"), file);
      assert.equal(await readFile(file, "utf8"), "newer");
    });

    it("says absent for a name it does not have, and leaves no file behind", async () => {
      await put("there/one", Buffer.from("1"));
      const file = local();
      await assert.rejects(store.fetch(name("there/two"), file), isFault("absent"));
      await assert.rejects(store.fetch(name("there/one/two"), file), isFault("absent"));
      await assert.rejects(store.fetch(name("there/nothing/at-all"), file), isFault("absent"));
      await assert.rejects(stat(file), { code: "ENOENT" });
      assert.equal(await store.has(name("there/one")), true);
      assert.equal(await store.has(name("there/two")), false);
      assert.equal(await store.has(name("nowhere/at/all")), false);
    });

    it("lists everything below a folder with size and time, and only that", async () => {
      const before = Date.now();
      for (const stored of [
        "area/npub1a/one/x.pack",
        "area/npub1a/one/x.idx",
        "area/npub1a/one-more/y.pack",
        "area/npub1b/=e4/z.pack",
      ]) {
        await put(stored, Buffer.from(stored));
      }
      assert.deepEqual(await namesBelow("area/npub1a/one"), ["area/npub1a/one/x.idx", "area/npub1a/one/x.pack"]);
      assert.equal((await namesBelow("area/npub1a")).length, 3);
      assert.equal((await namesBelow("area")).length, 4);
      assert.deepEqual(await namesBelow("area/nobody"), []);
      assert.ok((await namesBelow()).includes("area/npub1b/=e4/z.pack"));
      for await (const file of store.list(mustBeStoredName("area", 1))) {
        assert.equal(file.bytes, file.name.length);
        // The store's clock may count whole seconds.
        assert.ok(file.putMs >= before - 1_000 && file.putMs <= Date.now() + 1_000, `put at ${file.putMs}`);
      }
    });

    it("lists more files than fit one page", async () => {
      const file = local();
      await writeFile(file, "1");
      const names = Array.from({ length: tests.manyFiles }, (_, index) => `many/${String(index).padStart(4, "0")}`);
      for (let from = 0; from < names.length; from += 50) {
        await Promise.all(names.slice(from, from + 50).map((stored) => store.put(name(stored), file)));
      }
      assert.deepEqual(await namesBelow("many"), names);
    });

    it("removes a file, a second time without a word, and takes the same name again", async () => {
      await put("gone/soon/a", Buffer.from("1"));
      await store.remove(name("gone/soon/a"));
      await store.remove(name("gone/soon/a"));
      assert.equal(await store.has(name("gone/soon/a")), false);
      await put("gone/soon/a", Buffer.from("2"));
      assert.deepEqual(await namesBelow("gone"), ["gone/soon/a"]);
    });

    it("keeps files that are put into a folder while its last one is removed", async () => {
      const file = local();
      await writeFile(file, "1");
      for (let round = 0; round < 20; round++) {
        await store.put(name("busy/repository/old"), file);
        await Promise.all([
          store.remove(name("busy/repository/old")),
          store.put(name("busy/repository/new"), file),
          store.put(name(`busy/other/${round}`), file),
        ]);
        assert.equal(await store.has(name("busy/repository/new")), true);
        await store.remove(name("busy/repository/new"));
      }
    });

    it("shows nothing of a put that was given up, and forgets what it left", async () => {
      const file = local();
      await writeFile(file, randomBytes(12_000_000));
      const giveUp = new AbortController();
      const putting = store.put(name("given-up/a"), file, giveUp.signal);
      giveUp.abort();
      await assert.rejects(putting, { name: "AbortError" });
      assert.equal(await store.has(name("given-up/a")), false);
      await store.removeUnfinished(Date.now() + 60_000);
      assert.equal(await store.removeUnfinished(Date.now() + 60_000), 0);
    });

    it("gives up a fetch when asked to, and leaves no file behind", async () => {
      await put("given-up/b", randomBytes(12_000_000));
      const file = local();
      await assert.rejects(store.fetch(name("given-up/b"), file, AbortSignal.abort()), { name: "AbortError" });
      await assert.rejects(stat(file), { code: "ENOENT" });
    });

    it("calls a fault of this machine's own disk by the system's name", async () => {
      const nowhere = join(folder, "no-such-folder", "file");
      await assert.rejects(store.fetch(name("again/a.pack"), nowhere), { code: "ENOENT" });
      await assert.rejects(store.put(name("again/b.pack"), nowhere), { code: "ENOENT" });
    });

    it("says unreachable when it is gone, never absent or empty, and works again when it is back", async () => {
      const file = local();
      await writeFile(file, "1");
      const bringBack = await tests.takeAway();
      await assert.rejects(store.fetch(name("again/a.pack"), local()), isFault("unreachable"));
      await assert.rejects(store.has(name("again/a.pack")), isFault("unreachable"));
      await assert.rejects(store.put(name("while/away"), file), isFault("unreachable"));
      await assert.rejects(store.remove(name("again/a.pack")), isFault("unreachable"));
      await assert.rejects(namesBelow(), isFault("unreachable"));
      await bringBack();
      assert.equal(await store.has(name("again/a.pack")), true);
      assert.equal(await store.has(name("while/away")), false);
    });
  });
}

/** Pure, the same for both. */
export const wrongNames: readonly string[] = [
  ...[
    "",
    "/",
    "a",
    "/a",
    "a/",
    "a//b",
    "a/../b",
    "a/.",
    "./a",
    "a/.b",
    "a/-b",
    "a\\b/c",
    "a/b c",
    "a/b\0",
    "a/ü",
    "a/b\n",
  ],
  `a/${"b".repeat(201)}`,
  Array.from({ length: 30 }, () => "a".repeat(40)).join("/"),
];

export const isName = (text: string): boolean => storedName(text) !== undefined;
