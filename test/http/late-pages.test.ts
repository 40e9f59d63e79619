// Pages of a repository whose questions git cannot answer in time: they say so. Half an answer would be a wrong one ("nothing
// in common", "no such commit", "0 commits").

import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { newKey, type PagesWorld, startPagesWorld } from "./pages-world.js";

describe("pages that git has no time for", { timeout: 300_000 }, () => {
  let world: PagesWorld;
  let folder: string;
  let url: string;
  let commits: string[];
  const owner = newKey();
  const page = async (path: string): Promise<{ status: number; after: string | null; text: string }> => {
    const answer = await fetch(url + path, { headers: { Accept: "text/html" } });
    const text = (await answer.text()).replace(/<[^>]*>/g, " ").replace(/\s+/g, " ");
    return { status: answer.status, after: answer.headers.get("retry-after"), text };
  };

  before(async () => {
    // A git that is killed at once where a slow disk or an endless history would have it killed later.
    folder = await mkdtemp(join(tmpdir(), "late-pages-"));
    const real = (await runProgram("sh", ["-c", "command -v git"])).stdout.trim();
    const program = join(folder, "git");
    await writeFile(
      program,
      `#!/bin/sh\ncase " $* " in *" merge-base "*|*" rev-list --count "*|*" rev-list --max-count=1 "*) kill -KILL $$ ;; esac\nexec ${real} "$@"\n`,
    );
    await chmod(program, 0o755);
    const path = process.env.PATH ?? "/usr/bin:/bin";
    process.env.PATH = `${folder}${delimiter}${path}`;
    try {
      world = await startPagesWorld();
    } finally {
      process.env.PATH = path;
    }
    url = world.url(owner, "slow");
    const copy = await world.host(owner, "slow", [{ a: "1" }, { a: "2" }, { a: "3" }]);
    commits = (await world.git(copy.folder, "rev-list", "main")).split("\n");
  });
  after(async () => {
    await world.close();
    await rm(folder, { recursive: true, force: true });
  });

  test("a comparison and a commit by its id say that it took too long, and when to come back", async () => {
    const [tip, middle] = commits;
    for (const path of [`/compare/${tip}...main`, `/commit/${middle}`, `/tree/${middle}`]) {
      const { status, after, text } = await page(path);
      assert.deepEqual([status, after], [503, "30"], `${path}: ${text}`);
      assert.match(text, /This took too long/);
    }
  });

  test("a folder is shown without the number of commits", async () => {
    const { status, text } = await page("");
    assert.equal(status, 200);
    assert.match(text, /All commits on main/);
  });
});
