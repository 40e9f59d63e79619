// threats.md row 45, and GRASP-06's contributors: data of events nobody knows yet. Under /prs/ it can be fetched until it
// expires; everywhere it has limits of its own, and only what a tip reaches is kept or claimed.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { rawPush, zeroId } from "../harness/grasp-raw-push.js";
import type { Story, WorkingCopy } from "../harness/grasp-story.js";
import { beginPrs, listed, prsDirectory, prsUrl, pullRequest, push, refOf } from "../stories/prs-world.js";

const anId = (): string => `refs/nostr/${randomBytes(32).toString("hex")}`;

describe("threat 45: data of unknown events", { timeout: 900_000 }, () => {
  let story: Story;
  before(async () => {
    story = await beginPrs({
      settings: { NGIT_UNCLAIMED_MAX_BYTES: "256KiB", NGIT_UNCLAIMED_PER_HOUR_PER_IP: "1000" },
    });
  });
  after(() => story.end());

  /** A commit that only this working copy has, with that many bytes nobody can compress. */
  const commitOf = async (work: WorkingCopy, bytes: number): Promise<string> => {
    await writeFile(join(work.folder, "heavy"), randomBytes(bytes));
    return work.commit(`heavy ${bytes}`);
  };
  const canFetch = async (url: string, id: string): Promise<boolean> => {
    const other = await story.workingCopy();
    return (await other.git("fetch", "-q", url, id)).code === 0;
  };
  const report = "report-status side-band-64k";

  it("threat 45: under /prs/ the ref can be fetched, by ref and by id, from the moment the push was answered", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const work = await story.workingCopy();
    const tip = await work.commit("never heard of");
    const event = pullRequest(story, contributor, owner, "elsewhere", tip);
    const url = prsUrl(story, contributor, "elsewhere");
    const pushed = await push(work, url, event);
    assert.equal(pushed.code, 0, pushed.stderr);
    for (const version of ["0", "1", "2"]) {
      const { stdout } = await runProgram("git", ["-c", `protocol.version=${version}`, "ls-remote", url]);
      assert.equal(stdout, `${tip}\t${refOf(event)}\n`, `protocol ${version}`);
      for (const wanted of [refOf(event), tip]) {
        const reader = await story.workingCopy();
        await reader.must("-c", `protocol.version=${version}`, "fetch", "-q", url, wanted);
        assert.equal(await reader.must("rev-parse", "FETCH_HEAD"), tip);
      }
    }
    assert.equal(await story.isServed(event), false, "the event is not here");
    const other = await work.commit("another value");
    const again = await push(work, url, event, other);
    assert.match(again.stderr, /was pushed for that event first/);
    assert.equal((await push(work, url, event, tip)).code, 0, "the same value again is no fault");
    const next = pullRequest(story, contributor, owner, "elsewhere", other);
    const second = await push(work, url, next, other);
    assert.equal(second.code, 0, second.stderr);
    assert.deepEqual(await listed(url), { [refOf(event)]: tip, [refOf(next)]: other });
    assert.ok(await canFetch(url, other));
    assert.equal(await canFetch(prsUrl(story, new Person(), "elsewhere"), tip), false, "nowhere else");
  });

  it("threat 45: a push that mixes a known and an unknown event is refused whole and leaves nothing", async () => {
    const [owner, author] = [new Person(), new Person()];
    const { work, url } = await story.hosted(owner, "mixed");
    const known = await work.commit("known");
    const event = author.sign(1618, [
      ["a", owner.coordinate("mixed")],
      ["c", known],
      ["clone", url],
    ]);
    await story.accepted(event);
    const unknown = await commitOf(work, 3 << 20);
    const refs = [`${known}:${refOf(event)}`, `${unknown}:${anId()}`];
    const mixed = await work.git("push", url, ...refs);
    assert.notEqual(mixed.code, 0);
    assert.match(mixed.stderr, /push them in a push of their own/);
    assert.equal(await canFetch(url, unknown), false, "nothing of it is served by id");
    assert.equal((await push(work, url, event, known)).code, 0, "by itself it passes");
    assert.ok(await story.isServed(event));
    const alone = await push(work, url, anId(), unknown);
    assert.match(alone.stderr, /a push may have 256 KiB at most/);
  });

  it("threat 45: what a push for a known event brings besides its commit is not kept", async () => {
    const [owner, author] = [new Person(), new Person()];
    const { work, url } = await story.hosted(owner, "besides");
    const tip = await work.commit("the pull request");
    await work.must("checkout", "-q", "--orphan", "junk");
    const junk = await commitOf(work, 200_000);
    const event = await story.accepted(
      author.sign(1618, [
        ["a", owner.coordinate("besides")],
        ["c", tip],
        ["clone", url],
      ]),
    );
    const { text } = await rawPush(url, {
      commands: [{ old: zeroId, new: tip, ref: refOf(event) }],
      capabilities: report,
      from: work.folder,
      objects: [tip, junk],
    });
    assert.match(text, /ok refs\/nostr/);
    assert.ok(await story.isServed(event));
    assert.ok(await canFetch(url, tip));
    assert.equal(await canFetch(url, junk), false);
  });

  it("threat 45: two pushes to one unknown id share its limit; its event claims its commit and nothing else", async () => {
    const [owner, author] = [new Person(), new Person()];
    const { work, url } = await story.hosted(owner, "twice");
    await work.must("checkout", "-q", "-b", "pr");
    const junk = await commitOf(work, 150_000);
    await work.must("reset", "-q", "--hard", "main");
    const tip = await work.commit("the pull request");
    const event = author.sign(1618, [
      ["a", owner.coordinate("twice")],
      ["c", tip],
      ["clone", url],
    ]);
    assert.equal((await push(work, url, event, junk)).code, 0);
    await work.must("reset", "-q", "--hard", "main");
    const more = await commitOf(work, 150_000);
    const over = await push(work, url, event, more);
    assert.notEqual(over.code, 0, "each is small enough, together they are not");
    assert.match(over.stderr, /publish the event first/);
    const { text } = await rawPush(url, {
      commands: [{ old: zeroId, new: tip, ref: refOf(event) }],
      capabilities: report,
      from: work.folder,
      objects: [tip],
    });
    assert.match(text, /ok refs\/nostr/);
    await story.accepted(event);
    assert.ok(await story.isServed(event));
    assert.ok(await canFetch(url, tip));
    assert.equal(await canFetch(url, junk), false, "pushed before the tip, named by nothing");
    assert.ok(!existsSync(join(story.directory(owner, "twice"), "unclaimed", event.id)));
  });

  it("threat 45: under /prs/ only what the tip reaches can be fetched", async () => {
    const contributor = new Person();
    const work = await story.workingCopy();
    const tip = await work.commit("tip");
    await work.must("checkout", "-q", "--orphan", "junk");
    const junk = await work.commit("junk");
    const url = prsUrl(story, contributor, "junk");
    const ref = anId();
    const { text } = await rawPush(url, {
      commands: [{ old: zeroId, new: tip, ref }],
      capabilities: report,
      from: work.folder,
      objects: [tip, junk],
    });
    assert.match(text, /ok refs\/nostr/);
    assert.deepEqual(await listed(url), { [ref]: tip });
    assert.equal(await canFetch(url, junk), false);
    assert.ok(existsSync(prsDirectory(story, contributor, "junk")));
  });
});
