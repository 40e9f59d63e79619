import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it, test } from "node:test";
import type { Oid, RefName } from "../nostr/nip34.js";
import { createRepositoryFiles, readRefFiles, repositoryConfigs, writeLooseRefs } from "./repository-files.js";

async function folder(t: { after(work: () => Promise<void>): void }): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "repository-files-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  return join(path, "one.git");
}

test("a repository is made once; the second time it is there already", async (t) => {
  const directory = await folder(t);
  assert.equal(await createRepositoryFiles(directory, "one"), "made");
  assert.equal(await createRepositoryFiles(directory, "one"), "was there");
  assert.equal(await readFile(join(directory, "config"), "utf8"), repositoryConfigs.sha1);
});

test("a directory that lost its HEAD and config is a repository again, with all that was left in it", async (t) => {
  const directory = await folder(t);
  await createRepositoryFiles(directory, "one");
  await writeFile(join(directory, "objects/pack/pack-1.pack"), "kept");
  for (const lost of ["HEAD", "config", "refs"]) await rm(join(directory, lost), { recursive: true });
  assert.equal(await createRepositoryFiles(directory, "one"), "completed");
  assert.equal(await readFile(join(directory, "HEAD"), "utf8"), "ref: refs/heads/master\n");
  assert.equal(await readFile(join(directory, "config"), "utf8"), repositoryConfigs.sha1);
  assert.equal(await readFile(join(directory, "objects/pack/pack-1.pack"), "utf8"), "kept");
});

test("a directory of another identifier is not taken over", async (t) => {
  const directory = await folder(t);
  await createRepositoryFiles(directory, "One");
  await assert.rejects(createRepositoryFiles(directory, "one"), /another identifier/);
});

const one = "1".repeat(40) as Oid;
const two = "2".repeat(40) as Oid;
const ref = (name: string): RefName => `refs/heads/${name}` as RefName;

describe("loose refs", () => {
  let folder = "";
  const at = (...parts: string[]): string => join(folder, "refs/heads", ...parts);
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "loose-refs-test-"));
    mkdirSync(at(), { recursive: true });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it("are written where git reads them, with the folders they need, over what was there and over what git packed", async () => {
    writeFileSync(join(folder, "packed-refs"), `${one} refs/heads/packed\n`);
    writeFileSync(at("main"), "");
    const updates = ["main", "deep/er/branch", "packed"].map((name) => ({ ref: ref(name), to: two }));
    assert.equal(await writeLooseRefs(folder, updates), true);
    assert.equal(readFileSync(at("deep/er/branch"), "utf8"), `${two}\n`);
    assert.equal(statSync(at("main")).mode & 0o077, 0, "the server's user's alone");
    const { refs, broken } = await readRefFiles(folder);
    assert.deepEqual(
      [...refs.values()].map(({ oid }) => oid),
      [two, two, two],
    );
    assert.deepEqual(broken, []);
  });

  it("are git's to write when one goes, when they are many, and when something is in the way, which stays as it is", async () => {
    const set = { ref: ref("main"), to: one };
    assert.equal(await writeLooseRefs(folder, [set, { ref: ref("old"), to: undefined }]), false);
    assert.equal(
      await writeLooseRefs(
        folder,
        Array.from({ length: 17 }, (_, n) => ({ ref: ref(`b${n}`), to: one })),
      ),
      false,
    );
    assert.equal(existsSync(at("main")), false, "nothing was written");
    writeFileSync(at("main.lock"), "another's");
    assert.equal(await writeLooseRefs(folder, [set]), false);
    assert.equal(readFileSync(at("main.lock"), "utf8"), "another's");
    mkdirSync(at("folder"));
    assert.equal(await writeLooseRefs(folder, [{ ref: ref("folder"), to: one }]), false);
    assert.equal(existsSync(at("folder.lock")), false);
    writeFileSync(at("file"), `${one}\n`);
    assert.equal(await writeLooseRefs(folder, [{ ref: ref("file/below"), to: one }]), false);
    assert.equal(readFileSync(at("file"), "utf8"), `${one}\n`);
  });

  it("that are none never become a path", async () => {
    const names = ["refs/heads/../../config", "/etc/passwd", "HEAD", "refs/heads/a.lock"];
    for (const name of names) {
      await assert.rejects(writeLooseRefs(folder, [{ ref: name as RefName, to: one }]), RangeError);
    }
    await assert.rejects(writeLooseRefs(folder, [{ ref: ref("main"), to: "ref: refs/heads/x" as Oid }]), RangeError);
  });
});
