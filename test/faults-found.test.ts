// What the fault harness found, told as stories that need no luck.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Person } from "./harness/grasp-people.js";
import { Story, stateEvent } from "./harness/grasp-story.js";
import { until } from "./harness/server.js";

describe("a partial state", () => {
  it("is held as far as it can be in every repository it decides in", async () => {
    const story = await Story.begin({ settings: { NGIT_PARTIAL_STATE_GRACE_SECS: "1" } });
    try {
      const [alice, bob] = [new Person(), new Person()];
      const { work, url } = await story.hosted(alice, "pair", [["maintainers", bob.pubkey]]);
      await story.accepted(story.announcement(bob, "pair", [["maintainers", alice.pubkey]]));
      const next = await work.commit("two");
      const state = stateEvent(alice, "pair", { "refs/heads/main": next, "refs/heads/absent": "1".repeat(40) });
      await story.accepted(state);
      await work.must("push", "-q", url, "main");
      assert.ok(await until(() => story.isServed(state), 30_000), "it is served after its grace");
      for (const owner of [alice, bob]) {
        const refs = await story.advertised(owner, "pair");
        assert.equal(refs["refs/heads/main"], next);
        assert.equal(refs["refs/heads/absent"], undefined);
      }
    } finally {
      await story.end();
    }
  });
});
