// GRASP-06 from end to end with real git: who may push what under /prs/, both orders, mirrors, withdrawal.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import type { Story, WorkingCopy } from "../harness/grasp-story.js";
import { until } from "../harness/server.js";
import { beginPrs, everythingIn, listed, prsDirectory, prsUrl, pullRequest, push, refOf } from "./prs-world.js";

describe("contributors' pull requests", () => {
  let story: Story;
  before(async () => {
    story = await beginPrs();
  });
  after(() => story.end());

  const oneCommit = async (text: string): Promise<{ work: WorkingCopy; tip: string }> => {
    const work = await story.workingCopy();
    return { work, tip: await work.commit(text) };
  };

  it("NIP-11 names GRASP-06", async () => {
    const answer = await fetch(story.server.origin, { headers: { accept: "application/nostr+json" } });
    const { supported_grasps: grasps } = (await answer.json()) as { supported_grasps: string[] };
    assert.ok(grasps.includes("GRASP-06"));
  });

  it("a fetch of any well-formed path acts like an empty repository and creates nothing", async () => {
    const anyone = new Person();
    const url = prsUrl(story, anyone, "nothing");
    const asked = everythingIn(story.server);
    for (const version of ["0", "1", "2"]) {
      const listing = await runProgram("git", ["-c", `protocol.version=${version}`, "ls-remote", url]);
      assert.deepEqual([listing.code, listing.stdout], [0, ""], listing.stderr);
    }
    const work = await story.workingCopy();
    await work.must("clone", "-q", url, "clone");
    const wanted = await work.git("fetch", url, "1".repeat(40));
    assert.notEqual(wanted.code, 0);
    assert.match(wanted.stderr, /not our ref/);
    for (const service of ["git-upload-pack", "git-receive-pack"]) {
      const head = await fetch(`${url}/info/refs?service=${service}`, { method: "HEAD" });
      assert.equal(head.status, 200);
      const probe = await fetch(`${url}/${service}`, { method: "POST", body: "0000" });
      assert.equal(probe.status, 200);
    }
    assert.equal((await fetch(url)).status, 200);
    assert.deepEqual(everythingIn(story.server), asked);
  });

  it("event first: it waits, the push of its commit releases it, and it can be fetched by ref and by id", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("event first");
    const event = pullRequest(story, contributor, owner, "elsewhere", tip);
    assert.match((await story.publish(event)).message, /^purgatory:/);
    assert.equal(await story.isServed(event), false);
    assert.ok(!existsSync(prsDirectory(story, contributor, "elsewhere")), "only a push makes it");
    const url = prsUrl(story, contributor, "elsewhere");
    const pushed = await push(work, url, event);
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.match(pushed.stderr, /the pull request is served from now on/);
    assert.ok(await story.isServed(event));
    assert.deepEqual(await listed(url), { [refOf(event)]: tip });
    assert.ok(existsSync(prsDirectory(story, contributor, "elsewhere")));
    const other = await story.workingCopy();
    await other.must("fetch", "-q", url, tip);
    assert.equal(await other.must("rev-parse", "FETCH_HEAD"), tip);
  });

  it("git first: the push can be fetched at once, and the event releases it; an update (1619) as well", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("git first");
    const event = pullRequest(story, contributor, owner, "gitfirst", tip);
    const url = prsUrl(story, contributor, "gitfirst");
    const pushed = await push(work, url, event);
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.deepEqual(await listed(url), { [refOf(event)]: tip }, "its event may never come here");
    assert.equal(await story.isServed(event), false);
    const { ok, message } = await story.publish(event);
    assert.deepEqual([ok, /^purgatory/.test(message)], [true, false], message);
    assert.ok(await story.isServed(event));
    assert.deepEqual(await listed(url), { [refOf(event)]: tip });

    const second = await work.commit("better");
    const update = pullRequest(story, contributor, owner, "gitfirst", second, {
      kind: 1619,
      more: [
        ["E", event.id],
        ["P", contributor.pubkey],
      ],
    });
    assert.equal((await push(work, url, update)).code, 0);
    await story.accepted(update);
    assert.ok(await story.isServed(update));
    assert.deepEqual(await listed(url), { [refOf(event)]: tip, [refOf(update)]: second });
    const comment = owner.sign(1111, [
      ["E", event.id],
      ["K", "1618"],
    ]);
    await story.accepted(comment);
    assert.ok(await story.isServed(comment), "what is about an accepted pull request is accepted");
  });

  it("a comment that comes before the data is served with its pull request", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("discussed early");
    const event = await story.accepted(pullRequest(story, contributor, owner, "talk", tip));
    const comment = await story.accepted(owner.sign(1111, [["E", event.id]]));
    assert.equal(await story.isServed(comment), false);
    assert.equal((await push(work, prsUrl(story, contributor, "talk"), event)).code, 0);
    assert.ok((await story.isServed(event)) && (await story.isServed(comment)));
  });

  it("a tip that differs from the event's c is deleted and releases nothing; the right push does", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("wrong");
    const right = await work.commit("right");
    const event = pullRequest(story, contributor, owner, "differs", right);
    const url = prsUrl(story, contributor, "differs");
    assert.equal((await push(work, url, event, tip)).code, 0);
    const other = await push(work, url, event, right);
    assert.match(other.stderr, /another commit, .{8}, was pushed for that event first/);
    assert.match((await story.publish(event)).message, /^purgatory:/);
    assert.equal(await story.isServed(event), false);
    assert.deepEqual(await listed(url), {});
    assert.ok(!existsSync(prsDirectory(story, contributor, "differs")), "nothing of it is left");
    assert.equal((await push(work, url, event, right)).code, 0);
    assert.ok(await story.isServed(event));
  });

  it("a known event: only its commit, no deletion; an event of another signer, name or path is refused", async () => {
    const [owner, contributor, stranger] = [new Person(), new Person(), new Person()];
    const { work, tip } = await oneCommit("known");
    const other = await work.commit("other");
    const event = pullRequest(story, contributor, owner, "known", tip);
    const url = prsUrl(story, contributor, "known");
    await story.accepted(event);
    const refusal = async (target: string, from = other): Promise<string> => {
      const result = await push(work, target, event, from);
      assert.notEqual(result.code, 0);
      return result.stderr;
    };
    assert.match(await refusal(url), /the c tag of that event names .{8}, not .{8}/);
    assert.ok(!existsSync(prsDirectory(story, contributor, "known")), "a refused push leaves nothing");
    assert.equal((await push(work, url, event, tip)).code, 0);
    assert.match(await refusal(url), /the c tag of that event/);
    const deletion = await work.git("push", url, `:${refOf(event)}`);
    assert.notEqual(deletion.code, 0);
    assert.match(deletion.stderr, /cannot be deleted by a push/);
    assert.match(await refusal(prsUrl(story, stranger, "known"), tip), /for another repository/);
    assert.match(await refusal(prsUrl(story, contributor, "unknown"), tip), /for another repository/);
    assert.deepEqual(await listed(url), { [refOf(event)]: tip });
    assert.ok(!existsSync(prsDirectory(story, stranger, "known")));

    const strangers = pullRequest(story, stranger, owner, "known", tip, { clone: url });
    assert.match((await story.publish(strangers)).message, /^blocked|^restricted|^invalid/);
    const elsewhere = pullRequest(story, contributor, owner, "known", tip, { coordinate: owner.coordinate("other") });
    assert.equal((await story.publish(elsewhere)).ok, false, "its a names another identifier than its clone");
    const foreign = pullRequest(story, contributor, owner, "known", tip, { clone: "https://other.example/x.git" });
    assert.equal((await story.publish(foreign)).ok, false);
  });

  it("a stranger's data for an event is dropped when the event turns out to lie elsewhere", async () => {
    const [owner, contributor, stranger] = [new Person(), new Person(), new Person()];
    const { work, tip } = await oneCommit("parked");
    const event = pullRequest(story, contributor, owner, "parked", tip);
    assert.equal((await push(work, prsUrl(story, stranger, "parked"), event)).code, 0);
    assert.ok(existsSync(prsDirectory(story, stranger, "parked")));
    await story.accepted(event);
    assert.ok(await until(() => !existsSync(prsDirectory(story, stranger, "parked"))));
    assert.equal(await story.isServed(event), false, "its own repository has nothing");
  });

  it("other refs are refused in git's report, not by HTTP, one by one and all when atomic", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("branches");
    const event = await story.accepted(pullRequest(story, contributor, owner, "branches", tip));
    const url = prsUrl(story, contributor, "branches");
    const refs = ["refs/heads/main", "refs/tags/v1", "refs/nostr/abc", `refs/nostr/${event.id.toUpperCase()}`];
    for (const ref of refs) {
      const result = await work.git("push", url, `HEAD:${ref}`);
      assert.notEqual(result.code, 0);
      assert.match(result.stderr, /\[remote rejected\] HEAD -> /, result.stderr);
      assert.match(result.stderr, /only refs\/nostr\/<event id> can be pushed here/);
      assert.doesNotMatch(result.stderr, /not found|\b404\b|HTTP/);
      assert.ok(!existsSync(prsDirectory(story, contributor, "branches")));
    }
    const atomic = await work.git("push", "--atomic", url, "HEAD:refs/heads/main", `HEAD:${refOf(event)}`);
    assert.notEqual(atomic.code, 0);
    assert.ok(!existsSync(prsDirectory(story, contributor, "branches")));
    const mixed = await work.git("push", url, "HEAD:refs/heads/main", `HEAD:${refOf(event)}`);
    assert.notEqual(mixed.code, 0);
    assert.match(mixed.stderr, /\[new reference\]\s+HEAD -> refs\/nostr\//);
    assert.deepEqual(await listed(url), { [refOf(event)]: tip });
    assert.ok(await story.isServed(event));
  });

  it("pushes side by side into one that is not there yet: refused ones take nothing from accepted ones", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const url = prsUrl(story, contributor, "together");
    const pushes = await Promise.all(
      Array.from({ length: 8 }, async (_none, index) => {
        const { work, tip } = await oneCommit(`together ${index}`);
        const isRight = index % 2 === 0;
        const event = pullRequest(story, contributor, owner, "together", isRight ? tip : "1".repeat(40));
        if (index % 4 !== 0) await story.accepted(event);
        return { work, tip, event, isRight };
      }),
    );
    const codes = await Promise.all(pushes.map(async ({ work, event }) => (await push(work, url, event)).code));
    assert.deepEqual(
      codes.map((code) => code === 0),
      pushes.map(({ isRight }) => isRight),
    );
    for (const { event, isRight } of pushes) if (isRight) await story.accepted(event);
    const expected = pushes.filter(({ isRight }) => isRight).map(({ event, tip }) => [refOf(event), tip]);
    assert.deepEqual(await listed(url), Object.fromEntries(expected));
  });

  it("is mirrored into the repository it is for, also when that is hosted later; never back", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("for later");
    const early = pullRequest(story, contributor, owner, "mirror", tip);
    const url = prsUrl(story, contributor, "mirror");
    await push(work, url, early);
    await story.accepted(early);
    assert.ok(await story.isServed(early));
    await story.hosted(owner, "mirror");
    assert.equal((await story.advertised(owner, "mirror"))[refOf(early)], tip, "hosted later");

    const second = await work.commit("for now");
    const late = pullRequest(story, contributor, owner, "mirror", second);
    await story.accepted(late);
    assert.equal((await push(work, url, late)).code, 0);
    assert.equal((await story.advertised(owner, "mirror"))[refOf(late)], second, "hosted already");
    assert.equal((await listed(url))[refOf(late)], second);

    const third = await work.commit("pushed to the repository itself");
    const direct = pullRequest(story, contributor, owner, "mirror", third);
    assert.equal((await push(work, story.url(owner, "mirror"), direct)).code, 0);
    await story.accepted(direct);
    assert.ok(await story.isServed(direct));
    assert.equal((await story.advertised(owner, "mirror"))[refOf(direct)], third);
    assert.equal((await listed(url))[refOf(direct)], undefined, "never back");
    assert.equal((await push(work, url, direct)).code, 0, "its signer may bring it there");
    assert.equal((await listed(url))[refOf(direct)], third);
  });

  it("one that waits is released by a push into its repository that was hosted since", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const { work, tip } = await oneCommit("either");
    const event = await story.accepted(pullRequest(story, contributor, owner, "either", tip));
    await story.hosted(owner, "either");
    assert.equal(await story.isServed(event), false);
    assert.equal((await push(work, story.url(owner, "either"), event)).code, 0);
    assert.ok(await story.isServed(event));
  });

  it("goes with its author's deletion, here and in the mirror; with his vanishing, all of it", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    await story.hosted(owner, "withdrawn");
    const url = prsUrl(story, contributor, "withdrawn");
    const { work, tip } = await oneCommit("first");
    const first = await story.accepted(pullRequest(story, contributor, owner, "withdrawn", tip));
    await push(work, url, first);
    const second = await story.accepted(
      pullRequest(story, contributor, owner, "withdrawn", await work.commit("second")),
    );
    await push(work, url, second);
    assert.equal(Object.keys(await listed(url)).length, 2);
    await story.accepted(owner.sign(5, [["e", first.id]]));
    assert.ok((await story.isServed(first)) && (await listed(url))[refOf(first)], "a stranger's deletion is nothing");
    await story.accepted(contributor.sign(5, [["e", first.id]]));
    assert.deepEqual(Object.keys(await listed(url)), [refOf(second)]);
    assert.equal((await story.advertised(owner, "withdrawn"))[refOf(first)], undefined);
    await story.accepted(contributor.sign(62, [["relay", `ws://${story.server.domain}`]]));
    assert.ok(await until(() => !existsSync(prsDirectory(story, contributor, "withdrawn"))));
    assert.equal((await story.advertised(owner, "withdrawn"))[refOf(second)], undefined);
    assert.deepEqual(await listed(url), {});
  });

  it("its page says whose, for what, what is here and where else; an empty one that nothing is here yet", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    await story.hosted(owner, "shown");
    const url = prsUrl(story, contributor, "shown");
    const page = async (): Promise<string> => {
      const answer = await fetch(url, { headers: { accept: "text/html" } });
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get("content-security-policy") ?? "", /default-src 'none'/);
      return answer.text();
    };
    assert.match(await page(), /Nothing yet/);
    const written = await fetch(url, { method: "POST" });
    assert.deepEqual([written.status, written.headers.get("allow")], [405, "GET, HEAD"]);
    const { work, tip } = await oneCommit("shown");
    const more = [["subject", "<script>alert(1)</script>"]];
    const event = pullRequest(story, contributor, owner, "shown", tip, { more });
    await story.accepted({ ...event });
    assert.doesNotMatch(await page(), new RegExp(event.id), "what waits is not shown");
    await push(work, url, event);
    const text = await page();
    assert.match(text, new RegExp(`git fetch ${url} refs/nostr/${event.id}`));
    assert.match(text, new RegExp(`href="/${owner.npub}/shown.git"`));
    assert.match(text, new RegExp(contributor.npub.slice(0, 10)));
    assert.match(text, /work on shown/);
    assert.doesNotMatch(text, /<script>alert/);
  });
});
