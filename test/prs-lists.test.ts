// Lists and bans under /prs/: for the signer and for the coordinate, by push and by event.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { describe, it } from "node:test";
import { Person } from "./harness/grasp-people.js";
import { Story } from "./harness/grasp-story.js";
import { listed, prsDirectory, prsUrl, pullRequest, push } from "./prs-world.js";

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
});
