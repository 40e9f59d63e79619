// Invariant 3: at no instant is a state served whose refs the repository does not have.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Person } from "../harness/grasp-people.js";
import { onCluster, Story, stateEvent } from "../harness/grasp-story.js";

for (const backend of onCluster ? (["postgres"] as const) : (["memory", "lmdb"] as const)) {
  describe(`refs and events agree (${backend})`, () => {
    let story: Story;
    before(async () => {
      story = await Story.begin({ backend });
    });
    after(() => story.end());

    it("whoever sees a state and then looks at the refs sees them, and the reverse, during many pushes", async () => {
      const [alice, bob] = [new Person(), new Person()];
      const { work, url } = await story.hosted(alice, "watched", [["maintainers", bob.pubkey]]);
      await story.publish(story.announcement(bob, "watched", [["maintainers", alice.pubkey]]));
      const rounds = 6;
      const leastPauseMs = 20;
      const tips: string[] = [await work.must("rev-parse", "HEAD")];
      for (let i = 0; i < rounds; i++) tips.push(await work.commit(`round ${i}`));
      const order = new Map(tips.map((tip, index) => [tip, index]));
      let isOver = false;
      let looks = 0;
      const servedRound = async (): Promise<number> => {
        const states = await story.served({ kinds: [30618], authors: [alice.pubkey, bob.pubkey] });
        return Math.max(
          ...states.map(({ tags }) => order.get(tags.find(([name]) => name === "refs/heads/main")?.[1] ?? "") ?? -1),
        );
      };
      const shownRound = async (owner: Person): Promise<number> => {
        const response = await fetch(`${story.url(owner, "watched")}/info/refs?service=git-upload-pack`);
        const tip = /([0-9a-f]{40}) refs\/heads\/main/.exec(await response.text())?.[1] ?? "";
        return order.get(tip) ?? -1;
      };
      const watch = async (owner: Person): Promise<void> => {
        while (!isOver) {
          const begun = performance.now();
          const served = await servedRound();
          const shown = await shownRound(owner);
          assert.ok(shown >= served, `state of round ${served} was served while refs were of round ${shown}`);
          const servedAfter = await servedRound();
          assert.ok(servedAfter >= shown, `refs of round ${shown} were shown while the state was of ${servedAfter}`);
          looks++;
          // The pushes run in this process too: looks without a pause would only make them take longer, and longer still
          // on a busy machine.
          const pauseMs = Math.max(leastPauseMs, 2 * (performance.now() - begun));
          await new Promise((resolve) => setTimeout(resolve, pauseMs));
        }
      };
      const watching = Promise.all([watch(alice), watch(bob)]);
      try {
        for (const [index, tip] of tips.entries()) {
          if (index === 0) continue;
          const author = index % 2 === 0 ? alice : bob;
          const at = Math.floor(Date.now() / 1000) - 500 + index;
          const state = author.sign(
            30618,
            [
              ["d", "watched"],
              ["refs/heads/main", tip],
            ],
            "",
            at,
          );
          await story.accepted(state);
          await work.must("push", "-q", url, `${tip}:refs/heads/main`);
          assert.ok(await story.isServed(state));
        }
      } finally {
        isOver = true;
        await watching;
      }
      assert.ok(looks > rounds, `looked ${looks} times`);
    });

    // What is slow about it is the git clients, not the store.
    const isOnce = { skip: backend === "memory" };
    it(
      "thirty pushes and states of one maintainer set at once end with the newest state everywhere",
      isOnce,
      async () => {
        const [alice, bob] = [new Person(), new Person()];
        const { work } = await story.hosted(alice, "crowd", [["maintainers", bob.pubkey]]);
        await story.publish(story.announcement(bob, "crowd", [["maintainers", alice.pubkey]]));
        const count = 15;
        const tips: string[] = [];
        for (let i = 0; i < count; i++) tips.push(await work.commit(`crowd ${i}`));
        const now = Math.floor(Date.now() / 1000) - 400;
        const states = tips.map((tip, index) =>
          (index % 2 === 0 ? alice : bob).sign(
            30618,
            [
              ["d", "crowd"],
              ["refs/heads/main", tip],
            ],
            "",
            now + index,
          ),
        );
        const work30 = tips.flatMap((tip, index) => {
          const owner = index % 3 === 0 ? bob : alice;
          const state = states[index];
          assert.ok(state);
          return [
            story.publish(state),
            story
              .publish(state)
              .then(() => work.git("push", "-q", story.url(owner, "crowd"), `+${tip}:refs/heads/main`)),
          ];
        });
        await Promise.all(work30);
        const last = tips.at(-1) ?? "";
        for (const owner of [alice, bob]) {
          assert.equal((await story.advertised(owner, "crowd"))["refs/heads/main"], last);
        }
        const newest = states.at(-1);
        assert.ok(newest && (await story.isServed(newest)));
      },
    );

    it("a state that arrives when its objects are here moves the refs before its OK", async () => {
      const alice = new Person();
      const { tip } = await story.hosted(alice, "here");
      const state = stateEvent(alice, "here", { "refs/heads/main": tip, "refs/tags/now": tip });
      assert.deepEqual(await story.publish(state), { ok: true, message: "" });
      assert.equal((await story.advertised(alice, "here"))["refs/tags/now"], tip);
    });
  });
}
