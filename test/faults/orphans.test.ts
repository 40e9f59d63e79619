// threats 20: a server that is killed leaves no git process behind, and its memory does not follow the data's size.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { growthDuring, mebibyte } from "../harness/held-memory.js";
import { removeFolder, startChild, until } from "../harness/server.js";

const megabytes = Number(process.env.GRASP_TEST_MEGABYTES ?? 48);

function gitProcessesAt(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const text = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return text.includes(`${folder}/git/`) ? [text] : [];
      } catch {
        return [];
      }
    });
}

describe("a large repository", () => {
  it(`${megabytes} MB are pushed and cloned with flat memory; a kill in the middle of a push leaves no process`, async (t) => {
    const server = await startChild();
    const story = await Story.on(server);
    try {
      const alice = new Person();
      await story.announce(alice, "large");
      const work = await story.workingCopy();
      const files = Math.ceil(megabytes / 16);
      const script = `for i in $(seq ${files}); do head -c ${Math.ceil(megabytes / files)}M /dev/urandom > f$i; done`;
      await runProgram("sh", ["-c", script], { cwd: work.folder });
      await work.must("config", "core.compression", "0");
      const tip = await work.commit("large");
      await story.state(alice, "large", { "refs/heads/main": tip });
      const [, growth] = await growthDuring(server.child, async () => {
        await work.must("push", "-q", story.url(alice, "large"), "main");
        await work.must("clone", "-q", "--bare", story.url(alice, "large"), "../copy.git");
      });
      const [held, own] = [growth.heldBytes / mebibyte, growth.ownBytes / mebibyte];
      t.diagnostic(`grew by ${held.toFixed(1)} MiB held, ${own.toFixed(0)} MiB with garbage`);
      assert.ok(held < megabytes / 2, `held ${held} MiB more`);

      await runProgram("sh", ["-c", "head -c 16M /dev/urandom > more"], { cwd: work.folder });
      const more = await work.commit("more");
      await story.state(alice, "large", { "refs/heads/main": more });
      const pushing = work.git("push", "-q", story.url(alice, "large"), "main");
      assert.ok(await until(() => gitProcessesAt(server.folder).length > 0), "git was at work");
      server.child.kill("SIGKILL");
      await Promise.all([server.ended, pushing]);
      assert.ok(
        await until(() => gitProcessesAt(server.folder).length === 0),
        gitProcessesAt(server.folder).join("\n"),
      );
    } finally {
      await story.relay.close();
      server.child.kill("SIGKILL");
      await server.ended;
      await removeFolder(server.folder);
    }
  });
});
