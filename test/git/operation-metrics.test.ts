// What `ngit_git_operations_total` counts (configuration.md, Metrics): fetch, clone and push apart, a refused push is not
// a success, one push counts once.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { until } from "../harness/server.js";

describe("git operations in the metrics", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  async function count(operation: string, status: string): Promise<number> {
    const text = await (await fetch(`${story.server.origin}/metrics`)).text();
    const line = `ngit_git_operations_total{operation="${operation}",status="${status}"} `;
    return Number(
      text
        .split("\n")
        .find((one) => one.startsWith(line))
        ?.slice(line.length) ?? 0,
    );
  }
  const becomes = async (operation: string, status: string, wanted: number): Promise<void> => {
    await until(async () => (await count(operation, status)) >= wanted, 120_000);
    assert.equal(await count(operation, status), wanted, `${operation} ${status}`);
  };

  for (const version of [0, 2]) {
    it(`a clone, a fetch, a push and a refused push are told apart, protocol v${version}`, async () => {
      const person = new Person();
      const before = await Promise.all(["clone", "fetch", "push"].map((operation) => count(operation, "ok")));
      const [clones = 0, fetches = 0, pushes = 0] = before;
      const refused = await count("push", "refused");
      const { work, url } = await story.hosted(person, `counted-${version}`);
      await becomes("push", "ok", pushes + 1);
      const folder = join(story.server.folder, `clone-${version}`);
      const protocol = ["-c", `protocol.version=${version}`];
      assert.equal((await runProgram("git", [...protocol, "clone", "-q", url, folder])).code, 0);
      await becomes("clone", "ok", clones + 1);
      assert.equal(await count("fetch", "ok"), fetches);

      const tip = await work.commit("two");
      assert.notEqual((await work.git("push", url, "main")).code, 0);
      await becomes("push", "refused", refused + 1);
      await story.state(person, `counted-${version}`, { "refs/heads/main": tip });
      await work.must("push", "-q", url, "main");
      await becomes("push", "ok", pushes + 2);
      assert.equal((await runProgram("git", [...protocol, "-C", folder, "fetch", "-q"])).code, 0);
      await until(async () => (await count("fetch", "ok")) > fetches, 120_000);
      assert.ok((await count("fetch", "ok")) > fetches, "a fetch");
      assert.equal(await count("clone", "ok"), clones + 1);
    });
  }
});

/** Zero can be their right value here, where queues are empty and packs tiny: only that they are there is asked for. */
const restAtZero = new Set([
  "ngit_queue_length",
  "ngit_git_housekeeping_queue",
  "ngit_git_refs_behind",
  "ngit_git_housekeeping_freed_bytes_total",
]);

/** Sync, hunt and relay have tests of their own for their numbers. */
function namedInOtherTests(): string {
  const files = (readdirSync("test", { recursive: true }) as string[]).filter(
    (file) => file.endsWith(".test.ts") && !/^(?:git\/operation|docs\/deploy)/.test(file),
  );
  return files.map((file) => readFileSync(join("test", file), "utf8")).join("\n");
}

describe("every registered name", () => {
  it("is fed: by a repository's life, or where another test shows it", async () => {
    const story = await Story.begin({
      settings: { NGIT_GIT_REPACK_AFTER_PACKS: "1", NGIT_GIT_REPACK_QUIET_SECS: "1" },
    });
    try {
      const person = new Person();
      const { work, url } = await story.hosted(person, "measured");
      for (const text of ["two", "three"]) {
        const tip = await work.commit(text);
        await story.state(person, "measured", { "refs/heads/main": tip });
        await work.must("push", "-q", url, "main");
      }
      await work.commit("nobody signed this");
      assert.notEqual((await work.git("push", "-q", url, "main")).code, 0);
      const elsewhere = namedInOtherTests();
      const unfed = async (): Promise<string[]> => {
        const text = await (await fetch(`${story.server.origin}/metrics`)).text();
        const names = [...text.matchAll(/^# TYPE ((?:ngit|purgatory)_\w+) /gm)].map(([, name = ""]) => name);
        assert.ok(names.length > 50, `${names.length} names`);
        const isFed = (name: string): boolean =>
          text.split("\n").some((line) => {
            const [sample = "", value = "0"] = line.startsWith("#") ? [] : line.split(/ (?=[^ ]+$)/);
            const isOfIt =
              sample.replace(/\{.*$/, "").replace(/_(?:count|sum)$/, "") === name ||
              sample.startsWith(`${name}{`) ||
              sample === name;
            return isOfIt && (restAtZero.has(name) || Number(value) !== 0);
          });
        return names.filter((name) => !elsewhere.includes(name) && !isFed(name));
      };
      await until(async () => (await unfed()).length === 0, 120_000);
      assert.deepEqual(await unfed(), []);
    } finally {
      await story.end();
    }
  });
});
