// Lists and bans under /prs/: for the signer and for the coordinate, by push and by event.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { holdfast } from "../cli/run.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { dropInEnvironment } from "../harness/server.js";
import { listed, prsDirectory, prsUrl, pullRequest, push, refOf } from "./prs-world.js";

describe("lists and /prs/", () => {
  it("a blacklisted signer or name is refused by push and by event; a blacklisted coordinate by its event", async () => {
    const [owner, contributor, banned] = [new Person(), new Person(), new Person()];
    const NGIT_REPOSITORY_BLACKLIST = `${banned.npub},forbidden`;
    const story = await Story.begin({ settings: { NGIT_GRASP06_ENABLE: "true", NGIT_REPOSITORY_BLACKLIST } });
    try {
      const work = await story.workingCopy();
      const tip = await work.commit("listed");
      const refusedPush = async (signer: Person, identifier: string): Promise<void> => {
        const { code, stderr } = await push(work, prsUrl(story, signer, identifier), `refs/nostr/${"ab".repeat(32)}`);
        assert.notEqual(code, 0);
        assert.match(stderr, /not wanted here/);
        assert.ok(!existsSync(prsDirectory(story, signer, identifier)));
      };
      await refusedPush(banned, "x");
      await refusedPush(contributor, "forbidden");
      const events = [
        pullRequest(story, banned, owner, "x", tip),
        pullRequest(story, contributor, banned, "x", tip),
        pullRequest(story, contributor, owner, "forbidden", tip),
      ];
      for (const event of events) assert.match((await story.publish(event)).message, /not wanted here/);
      assert.ok((await story.publish(pullRequest(story, contributor, owner, "x", tip))).ok);
      assert.deepEqual(await listed(prsUrl(story, banned, "x")), {}, "still an empty repository to read");
    } finally {
      await story.end();
    }
  });

  it("with a whitelist, the signer or the coordinate must be on it", async () => {
    const [owner, contributor, listedOne] = [new Person(), new Person(), new Person()];
    const NGIT_REPOSITORY_WHITELIST = listedOne.npub;
    const story = await Story.begin({ settings: { NGIT_GRASP06_ENABLE: "true", NGIT_REPOSITORY_WHITELIST } });
    try {
      const tip = await (await story.workingCopy()).commit("listed");
      assert.equal((await story.publish(pullRequest(story, contributor, owner, "x", tip))).ok, false);
      assert.ok((await story.publish(pullRequest(story, contributor, listedOne, "x", tip))).ok);
      assert.ok((await story.publish(pullRequest(story, listedOne, owner, "x", tip))).ok);
    } finally {
      await story.end();
    }
  });

  it("the operator's fsck and gc look under /prs/, and banning a key takes its pull requests away for good", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const story = await Story.begin({ backend: "lmdb", settings: { NGIT_GRASP06_ENABLE: "true" } });
    const verb = async (...words: string[]): Promise<Record<string, unknown>> => {
      const port = Number(story.server.domain.split(":")[1]);
      const environment = dropInEnvironment(story.server.folder, port, { backend: "lmdb" });
      const { code, stdout, stderr } = await holdfast([...words, "--json"], environment);
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout) as Record<string, unknown>;
    };
    try {
      await story.hosted(owner, "kept");
      const work = await story.workingCopy();
      const event = pullRequest(story, contributor, owner, "kept", await work.commit("spam"));
      assert.equal((await push(work, prsUrl(story, contributor, "kept"), event)).code, 0);
      const { waiting } = (await verb("purgatory", "list")) as { waiting: { repositories: string[] }[] };
      assert.deepEqual(waiting[0]?.repositories, [`prs/${contributor.npub}/kept`]);
      await story.accepted(event);
      assert.deepEqual(await verb("repos", "fsck"), { ok: true, checked: 2, unsound: [], strays: [] });
      assert.equal((await verb("repos", "gc")).done, 2);
      const one = `prs/${contributor.npub}/kept`;
      assert.deepEqual(await verb("repos", "fsck", one), { ok: true, checked: 1, unsound: [], strays: [] });
      assert.equal((await verb("repos", "gc", one)).done, 1);
      await verb("ban", "key", contributor.npub, "--yes");
      assert.equal(await story.isServed(event), false);
      assert.deepEqual(await listed(prsUrl(story, contributor, "kept")), {});
      assert.ok(!existsSync(prsDirectory(story, contributor, "kept")));
      assert.equal((await story.advertised(owner, "kept"))[refOf(event)], undefined);
      const again = await push(work, prsUrl(story, contributor, "kept"), event);
      assert.match(again.stderr, /not wanted here/);
      assert.equal((await story.publish(event)).ok, false);
    } finally {
      await story.end();
    }
  });
});
