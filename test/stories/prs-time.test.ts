// /prs/ over time and under load, on a clock the test drives: placeholders, budgets, quotas, what a sweep removes
// (threats.md rows 10, 18 and 19).

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { Person } from "../harness/grasp-people.js";
import type { Story, WorkingCopy } from "../harness/grasp-story.js";
import { type ServerOptions, until } from "../harness/server.js";
import { beginPrs, everythingIn, prsDirectory, prsUrl, pullRequest, push, refOf } from "./prs-world.js";

const minute = 60_000;
const hour = 60 * minute;
const patienceMs = 120_000;

class TimedStory {
  readonly clock = new ManualClock(Date.now());
  story!: Story;

  async begin(settings: ServerOptions["settings"] = {}): Promise<void> {
    const more = { NGIT_PING_INTERVAL_SECS: "2d", NGIT_PURGATORY_START_GRACE_SECS: "0", ...settings };
    this.story = await beginPrs({ clock: this.clock, settings: more });
  }

  person(): Person {
    return new Person(Math.floor(this.clock.nowMs() / 1000), 600);
  }

  /** Sweeps come round on the same clock. */
  eventually(isSo: () => Promise<boolean> | boolean): Promise<boolean> {
    return until(async () => {
      this.clock.advance(200);
      return isSo();
    }, patienceMs);
  }
}

async function heavyCommit(work: WorkingCopy, bytes: number): Promise<string> {
  await writeFile(join(work.folder, "heavy"), randomBytes(bytes));
  return work.commit(`heavy ${bytes}`);
}

const anId = (): string => `refs/nostr/${randomBytes(32).toString("hex")}`;

describe("threats 19: budgets under /prs/", () => {
  const timed = new TimedStory();
  before(() =>
    timed.begin({
      NGIT_UNCLAIMED_MAX_BYTES: "20KiB",
      NGIT_UNCLAIMED_PRS_MAX_BYTES: "200KiB",
      NGIT_UNCLAIMED_TOTAL_MAX_BYTES: "400KiB",
      NGIT_UNCLAIMED_PER_HOUR_PER_IP: "6",
      NGIT_PR_AUTHOR_MAX_BYTES: "300KiB",
      NGIT_PR_REPOSITORY_MAX_BYTES: "250KiB",
    }),
  );
  after(() => timed.story.end());

  it("unclaimed data is bounded a push, an hour and in all; whoever holds most gives way", async () => {
    const { story, clock } = timed;
    const victims = Array.from({ length: 8 }, () => timed.person());
    const work = await story.workingCopy();
    await heavyCommit(work, 300_000);
    const tooMuch = await push(work, prsUrl(story, victims[0] as Person, "flood"), anId());
    assert.notEqual(tooMuch.code, 0);
    assert.match(tooMuch.stderr, /a push may have .* at most: .*for an event this server does not know yet/);
    assert.ok(!existsSync(prsDirectory(story, victims[0] as Person, "flood")), "a refused push leaves nothing");

    const id = anId();
    const flood = async (victim: Person): Promise<string> => {
      const copy = await story.workingCopy();
      await heavyCommit(copy, 150_000);
      const { code, stderr } = await push(copy, prsUrl(story, victim, "flood"), id);
      return code === 0 ? "ok" : stderr;
    };
    const held = (): number => victims.filter((victim) => existsSync(prsDirectory(story, victim, "flood"))).length;
    // The refused one counted as well: five are left of six.
    for (const victim of victims.slice(1, 6)) assert.equal(await flood(victim), "ok");
    assert.equal(held(), 2, "400 KiB in all: the oldest gave way, repositories and all");
    assert.ok(existsSync(prsDirectory(story, victims[5] as Person, "flood")), "the newest stayed");
    assert.match(await flood(victims[6] as Person), /too many pushes for unknown events from your address/);
    assert.equal(held(), 2);
    clock.advance(61 * minute);
    assert.equal(await flood(victims[7] as Person), "ok");
  });

  it("an author's quota is one for all of his, is refused in his terminal, and comes back with his deletions", async () => {
    const { story } = timed;
    const [owner, contributor] = [timed.person(), timed.person()];
    const work = await story.workingCopy();
    const first = await story.accepted(
      pullRequest(story, contributor, owner, "quota-a", await heavyCommit(work, 200_000)),
    );
    assert.equal((await push(work, prsUrl(story, contributor, "quota-a"), first)).code, 0);
    const copy = await story.workingCopy();
    const second = await story.accepted(
      pullRequest(story, contributor, owner, "quota-b", await heavyCommit(copy, 150_000)),
    );
    const refused = await push(copy, prsUrl(story, contributor, "quota-b"), second);
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /quota|your pull requests use/);
    assert.ok(!existsSync(prsDirectory(story, contributor, "quota-b")));
    assert.equal((await push(copy, prsUrl(story, contributor, "quota-b"), second)).code !== 0, true);
    await story.accepted(contributor.sign(5, [["e", first.id]]));
    assert.ok(await timed.eventually(() => !existsSync(prsDirectory(story, contributor, "quota-a"))));
    assert.equal((await push(copy, prsUrl(story, contributor, "quota-b"), second)).code, 0);
    assert.ok(await story.isServed(second));
  });

  it("mirrors take of the repository's share for pull requests, not of its owner's; a full one does not hold up /prs/", async () => {
    const { story } = timed;
    const owner = timed.person();
    await story.hosted(owner, "share");
    const place = async (contributor: Person) => {
      const copy = await story.workingCopy();
      const event = await story.accepted(
        pullRequest(story, contributor, owner, "share", await heavyCommit(copy, 200_000)),
      );
      assert.equal((await push(copy, prsUrl(story, contributor, "share"), event)).code, 0);
      assert.ok(await story.isServed(event));
      return event;
    };
    const events = [await place(timed.person()), await place(timed.person()), await place(timed.person())];
    const mirrored = await story.advertised(owner, "share");
    // 250 KiB are full after the second: a share that is not used up takes one more whole.
    assert.deepEqual(
      events.map((event) => refOf(event) in mirrored),
      [true, true, false],
    );
    assert.equal(existsSync(story.directory(owner, "share")), true);
  });
});

describe("time under /prs/", () => {
  const timed = new TimedStory();
  before(() => timed.begin());
  after(() => timed.story.end());

  it("data without an event stays a day, then goes with its repository; nothing of it is left", async () => {
    const { story, clock } = timed;
    const contributor = timed.person();
    const before = everythingIn(story.server);
    const work = await story.workingCopy();
    const tip = await work.commit("unclaimed");
    assert.equal((await push(work, prsUrl(story, contributor, "day"), anId())).code, 0);
    clock.advance(23 * hour);
    clock.advance(10 * minute);
    const event = pullRequest(story, timed.person(), timed.person(), "other", tip);
    await story.publish(event);
    assert.ok(existsSync(prsDirectory(story, contributor, "day")), "an hour before its time");
    clock.advance(hour);
    assert.ok(await timed.eventually(() => !existsSync(prsDirectory(story, contributor, "day"))));
    const left = () => everythingIn(story.server).filter((name) => name !== "prs" && !before.includes(name));
    assert.ok(await timed.eventually(() => left().length === 0), left().join("\n"));
  });

  it("the event may come hours after the push", async () => {
    const { story, clock } = timed;
    const contributor = timed.person();
    const work = await story.workingCopy();
    const event = pullRequest(story, contributor, timed.person(), "late", await work.commit("late"));
    assert.equal((await push(work, prsUrl(story, contributor, "late"), event)).code, 0);
    clock.advance(20 * hour);
    await story.accepted(event);
    assert.ok(await story.isServed(event));
  });

  it("an event without data is dropped after half an hour and may be sent again", async () => {
    const { story, clock } = timed;
    const contributor = timed.person();
    const work = await story.workingCopy();
    const event = pullRequest(story, contributor, timed.person(), "again", await work.commit("again"));
    assert.match((await story.publish(event)).message, /^purgatory:/);
    clock.advance(31 * minute);
    const url = prsUrl(story, contributor, "again");
    // Unknown again: any commit may be pushed for it.
    const unrelated = await story.workingCopy();
    await unrelated.commit("unrelated");
    assert.ok(await timed.eventually(async () => (await push(unrelated, url, event)).code === 0));
    assert.match((await story.publish(event)).message, /^purgatory:/);
    assert.equal((await push(work, url, event)).code, 0);
    assert.ok(await story.isServed(event));
  });
});
