// GRASP-01 with stock git over the real server: what people do, in order, and what they are told when it is refused.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";

describe("GRASP-01 with stock git", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  it("an announcement waits, its empty repository answers at once, and nothing of it is served", async () => {
    const alice = new Person();
    const announcement = story.announcement(alice, "empty");
    const answer = await story.publish(announcement);
    assert.deepEqual(answer, { ok: true, message: "purgatory: won't be served until git data arrives" });
    if (story.isOnOneDisk) {
      assert.ok(existsSync(join(story.directory(alice, "empty"), "HEAD")), "on disk before its OK");
    }
    assert.deepEqual(await story.advertised(alice, "empty"), {});
    assert.equal(await story.isServed(announcement), false);
    assert.deepEqual(await story.served({ authors: [alice.pubkey] }), []);
    const page = await fetch(`${story.url(alice, "empty")}/info/refs?service=git-upload-pack`);
    assert.equal(page.status, 200);
  });

  it("state, push: when git returns, announcement and state are served and HEAD is the state's", async () => {
    const alice = new Person();
    const announcement = await story.announce(alice, "flow");
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    const state = stateEvent(
      alice,
      "flow",
      { "refs/heads/trunk": tip, "refs/heads/other": tip },
      "ref: refs/heads/trunk",
    );
    assert.match((await story.publish(state)).message, /^purgatory: /);
    const url = story.url(alice, "flow");
    const pushed = await work.git("push", url, "main:trunk", "main:other");
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.match(pushed.stderr, /remote: the repository is served from now on/);
    assert.match(pushed.stderr, /remote: the state event is served from now on/);
    assert.ok(await story.isServed(announcement));
    assert.ok(await story.isServed(state));
    assert.deepEqual(await story.advertised(alice, "flow"), {
      HEAD: tip,
      "refs/heads/other": tip,
      "refs/heads/trunk": tip,
    });
    const clone = await story.workingCopy();
    await clone.must("clone", "-q", url, "copy");
    assert.equal(await clone.must("-C", "copy", "symbolic-ref", "HEAD"), "refs/heads/trunk");
  });

  it("the announcement comes before its state to whoever listens", async () => {
    const alice = new Person();
    const listener = await story.server.connect();
    await listener.ask("live", { authors: [alice.pubkey] });
    await story.hosted(alice, "order");
    const kinds = listener.eventsOf("live").map((event) => (event as unknown as { kind: number }).kind);
    assert.deepEqual(kinds, [30617, 30618]);
    await listener.close();
  });

  it("CI results about a hosted commit are taken, served and shown beside it, with who asked for them", async () => {
    const [alice, coordinator, stranger] = [new Person(), new Person(), new Person()];
    const { tip, url } = await story.hosted(alice, "checked");
    const about = [
      ["a", alice.coordinate("checked")],
      ["c", tip],
      ["w", ".ngit/workflows/build.yml", "0".repeat(64)],
      ["o", "push"],
      ["r", "refs/heads/main"],
    ];
    await story.accepted(
      alice.sign(9843, [
        ["a", alice.coordinate("checked")],
        ["p", coordinator.pubkey],
      ]),
    );
    const marker = coordinator.sign(39842, [...about, ["d", "run-1"], ["status", "in_progress"]]);
    await story.accepted(marker);
    const page = async (): Promise<string> => (await fetch(url, { headers: { Accept: "text/html" } })).text();
    assert.match(await page(), /CI <bdi>build\.yml<\/bdi>: in progress/);
    const result = coordinator.sign(9842, [...about, ["r", "run-1"], ["conclusion", "failure"]]);
    await story.accepted(result);
    await story.accepted(stranger.sign(9842, [...about, ["r", "run-9"], ["conclusion", "success"]]));
    const shown = await page();
    assert.match(shown, /tag bad"><span title="[^"]*reported by npub1[^"]*">CI <bdi>build\.yml<\/bdi>: failure/);
    assert.match(shown, /CI <bdi>build\.yml<\/bdi>: success \(not asked for\)/);
    const commitPage = await (await fetch(`${url}/commit/${tip}`)).text();
    assert.match(commitPage, /<dt>Checks<\/dt><dd>.*CI <bdi>build\.yml<\/bdi>: failure/);
    const log = await (await fetch(`${url}/commits/main`)).text();
    assert.match(log, new RegExp(`/commit/${tip}">.*CI <bdi>build\\.yml</bdi>: failure`));
    assert.deepEqual(
      (await story.served({ "#c": [tip], kinds: [9842, 39842] })).map(({ id }) => id).sort(),
      [marker.id, result.id, ...(await story.served({ authors: [stranger.pubkey] })).map(({ id }) => id)].sort(),
    );
    // Ephemeral: passed on, not kept.
    const listener = await story.server.connect();
    await listener.ask("secrets", { kinds: [29846] });
    const heard = listener.next(([verb, id]) => verb === "EVENT" && id === "secrets");
    const secret = alice.sign(29846, [
      ["a", alice.coordinate("checked")],
      ["p", coordinator.pubkey],
    ]);
    await story.accepted(secret);
    assert.equal(((await heard)[2] as { id: string }).id, secret.id);
    assert.equal(await story.isServed(secret), false);
    // Once: two servers that follow each other would pass it to and fro.
    assert.deepEqual(await story.publish(secret), { ok: true, message: "duplicate: this event was passed on" });
    const next = alice.sign(29846, [["a", alice.coordinate("checked")]]);
    const later = listener.next(
      ([verb, id, event]) => verb === "EVENT" && id === "secrets" && (event as { id: string }).id === next.id,
    );
    await story.accepted(next);
    await later;
    assert.equal(listener.eventsOf("secrets").length, 2);
    await listener.close();
  });

  it("a push without a state says what to do, exits with an error and leaves nothing", async () => {
    const alice = new Person();
    await story.announce(alice, "nostate");
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    const files = async () => (story.isOnOneDisk ? await filesOf(story.directory(alice, "nostate")) : []);
    const before = await files();
    const pushed = await work.git("push", story.url(alice, "nostate"), "main");
    assert.notEqual(pushed.code, 0);
    const advice = `no state by a maintainer lists refs/heads/main at ${tip.slice(0, 8)}: publish a state event first`;
    assert.ok(pushed.stderr.includes(`remote: ${advice}`), pushed.stderr);
    assert.ok(pushed.stderr.includes(`! [remote rejected] main -> main (${advice})`), pushed.stderr);
    assert.deepEqual(await files(), before);
  });

  it("a push of something else than the state lists is refused with both values", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "differs");
    const other = await work.commit("two");
    const pushed = await work.git("push", url, "main");
    assert.notEqual(pushed.code, 0);
    assert.ok(pushed.stderr.includes(`at ${other.slice(0, 8)} (the newest lists ${tip.slice(0, 8)})`), pushed.stderr);
    assert.equal((await story.advertised(alice, "differs"))["refs/heads/main"], tip);
  });

  it("a stranger's state is refused, and his push with it", async () => {
    const alice = new Person();
    const eve = new Person();
    const { work, url } = await story.hosted(alice, "mine");
    const evil = await work.commit("evil");
    const answer = await story.publish(stateEvent(eve, "mine", { "refs/heads/main": evil }));
    assert.deepEqual(answer, { ok: false, message: "invalid: author not authorized for this repository" });
    assert.match((await work.git("push", url, "main")).stderr, /remote rejected/);
  });

  it("forced and unrelated histories are pushed when the state says so", async () => {
    const alice = new Person();
    const { work, url } = await story.hosted(alice, "forced");
    await work.must("checkout", "-q", "--orphan", "fresh");
    const fresh = await work.commit("unrelated");
    await story.state(alice, "forced", { "refs/heads/main": fresh });
    await work.must("push", "-q", "--force", url, "fresh:main");
    assert.equal((await story.advertised(alice, "forced"))["refs/heads/main"], fresh);
  });

  it("annotated tags are served with what they point at", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "tags");
    await work.must("tag", "-a", "v1", "-m", "one");
    const tag = await work.must("rev-parse", "refs/tags/v1");
    await story.state(alice, "tags", {
      "refs/heads/main": tip,
      "refs/tags/v1": tag,
      "refs/tags/v1^{}": tip,
    });
    await work.must("push", "-q", url, "v1");
    const refs = await story.advertised(alice, "tags");
    assert.equal(refs["refs/tags/v1"], tag);
    assert.equal(refs["refs/tags/v1^{}"], tip);
  });

  it("a branch the newer state lacks goes with that state, pushed for or not", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "gone");
    await story.state(alice, "gone", { "refs/heads/main": tip, "refs/heads/side": tip });
    assert.equal((await story.advertised(alice, "gone"))["refs/heads/side"], tip, "all objects were here");
    const state = await story.state(alice, "gone", { "refs/heads/main": tip });
    assert.ok(await story.isServed(state));
    assert.equal((await story.advertised(alice, "gone"))["refs/heads/side"], undefined);
    const again = await work.git("push", url, ":refs/heads/side");
    assert.match(again.stderr, /remote ref does not exist|Everything up-to-date|deleted/);
  });

  it("a branch becomes a directory and back", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "df");
    await story.state(alice, "df", { "refs/heads/main": tip, "refs/heads/a": tip });
    const two = await work.commit("two");
    await story.state(alice, "df", { "refs/heads/main": tip, "refs/heads/a/b": two });
    await work.must("push", "-q", url, "main:refs/heads/a/b", ":refs/heads/a");
    assert.deepEqual(Object.keys(await story.advertised(alice, "df")), ["HEAD", "refs/heads/a/b", "refs/heads/main"]);
    await story.state(alice, "df", { "refs/heads/main": tip, "refs/heads/a": two });
    assert.deepEqual(Object.keys(await story.advertised(alice, "df")), ["HEAD", "refs/heads/a", "refs/heads/main"]);
  });

  it("any object can be fetched by its id, also one no ref reaches any more", async () => {
    const alice = new Person();
    const { work, tip, url } = await story.hosted(alice, "byid");
    const two = await work.commit("two");
    await story.state(alice, "byid", { "refs/heads/main": two });
    await work.must("push", "-q", url, "main");
    await story.state(alice, "byid", { "refs/heads/main": tip });
    const clone = await story.workingCopy();
    await clone.must("fetch", "-q", url, two);
    assert.equal(await clone.must("rev-parse", "FETCH_HEAD"), two);
  });

  it("a push over a megabyte goes in chunks after a probe", async () => {
    const alice = new Person();
    await story.announce(alice, "chunked");
    const work = await story.workingCopy();
    await runProgram("sh", ["-c", "head -c 3000000 /dev/urandom > big"], { cwd: work.folder });
    const tip = await work.commit("big");
    await story.state(alice, "chunked", { "refs/heads/main": tip });
    const pushed = await runProgram("git", ["push", story.url(alice, "chunked"), "main"], {
      cwd: work.folder,
      env: { GIT_CURL_VERBOSE: "1" },
    });
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.match(pushed.stderr, /Transfer-Encoding: chunked/i);
    assert.match(pushed.stderr, /Content-Length: 4/i);
  });

  it("a mirror of 1,500 refs is pushed under a state that lists them all", async () => {
    const alice = new Person();
    await story.announce(alice, "mirror");
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    const names = Array.from({ length: 1_499 }, (_, i) => `refs/tags/t${String(i).padStart(4, "0")}`);
    await runProgram("git", ["update-ref", "--stdin"], {
      cwd: work.folder,
      input: names.map((name) => `create ${name} ${tip}\n`).join(""),
    });
    const refs = Object.fromEntries([["refs/heads/main", tip], ...names.map((name) => [name, tip])]);
    const state = await story.state(alice, "mirror", refs);
    await work.must("push", "-q", "--mirror", story.url(alice, "mirror"));
    assert.ok(await story.isServed(state));
    assert.equal(Object.keys(await story.advertised(alice, "mirror")).length, 1_501);
  });

  it("timing: an accepted event is usable 100 ms later, a repository answers 200 ms after its announcement", async () => {
    const alice = new Person();
    const from = performance.now();
    await story.announce(alice, "quick");
    const answer = await fetch(`${story.url(alice, "quick")}/info/refs?service=git-receive-pack`);
    assert.equal(answer.status, 200);
    const announcedMs = performance.now() - from;
    const { tip } = await story.hosted(alice, "quick2");
    const state = await story.state(alice, "quick2", { "refs/heads/main": tip, "refs/heads/x": tip });
    const sentMs = performance.now();
    assert.ok(await story.isServed(state));
    // A loaded machine is slower than the promise; nothing here waits for a timer, the shortest of which is a minute.
    assert.ok(announcedMs < 20_000 && performance.now() - sentMs < 20_000);
  });

  it("every maintainer of the set may decide, and each one's repository follows the same state", async () => {
    const alice = new Person();
    const bob = new Person();
    const { work, tip } = await story.hosted(alice, "team", [["maintainers", bob.pubkey]]);
    const bobs = story.announcement(bob, "team", [["maintainers", alice.pubkey]]);
    const answer = await story.publish(bobs);
    assert.deepEqual(answer, { ok: true, message: "" }, "filled from alice's and served at once");
    assert.equal((await story.advertised(bob, "team"))["refs/heads/main"], tip);
    const two = await work.commit("two");
    const state = await story.state(bob, "team", { "refs/heads/main": two });
    await work.must("push", "-q", story.url(alice, "team"), "main");
    for (const owner of [alice, bob]) assert.equal((await story.advertised(owner, "team"))["refs/heads/main"], two);
    assert.ok(await story.isServed(state));
  });

  it("a maintainer without a repository decides in each one that lists him; the data goes to all of them", async () => {
    const [alice, bob, mia] = [new Person(), new Person(), new Person()];
    for (const owner of [alice, bob]) await story.announce(owner, "shared", [["maintainers", mia.pubkey]]);
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.state(mia, "shared", { "refs/heads/main": tip });
    await work.must("push", "-q", story.url(alice, "shared"), "main");
    for (const owner of [alice, bob]) assert.equal((await story.advertised(owner, "shared"))["refs/heads/main"], tip);
  });

  it("nak: the same waiting announcement again and again is OK each time and resets nothing", async () => {
    const alice = new Person();
    const announcement = await story.announce(alice, "größe@x");
    for (let i = 0; i < 3; i++) assert.equal((await story.publish(announcement)).ok, true);
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    await story.state(alice, "größe@x", { "refs/heads/main": tip });
    // Not percent-encoded by the client; git does it on the wire.
    await work.must("push", "-q", `${story.server.origin}/${alice.npub}/größe@x.git`, "main");
    assert.equal((await story.advertised(alice, "größe@x"))["refs/heads/main"], tip);
    const answer = await story.publish(announcement);
    assert.match(answer.message, /^duplicate:/);
  });
});

const filesOf = async (folder: string): Promise<string[]> => (await readdir(folder, { recursive: true })).sort();
