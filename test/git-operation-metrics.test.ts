// What `ngit_git_operations_total` counts (configuration.md, Metrics): fetch, clone and push apart, a refused push is not
// a success, one push counts once.

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runProgram } from "./harness/git-server.js";
import { Person } from "./harness/grasp-people.js";
import { Story } from "./harness/grasp-story.js";
import { until } from "./harness/server.js";

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
    await until(async () => (await count(operation, status)) >= wanted, 30_000);
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
      await until(async () => (await count("fetch", "ok")) > fetches, 30_000);
      assert.ok((await count("fetch", "ok")) > fetches, "a fetch");
      assert.equal(await count("clone", "ok"), clones + 1);
    });
  }
});
