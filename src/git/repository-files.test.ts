import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createRepositoryFiles, repositoryConfigs } from "./repository-files.js";

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
