// The pages of issues, pull requests and patches over HTTP, on the whole server with real git: what they show, whose word
// counts, and what strangers can write without harm to a reader or to the server.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { after, before, describe, test } from "node:test";
import { kinds } from "../../src/nostr/event.js";
import { neventOf, noteOf, npubOf } from "../../src/nostr/nip19.js";
import { newKey, type PagesWorld, startPagesWorld } from "./pages-world.js";

/** What a reader sees. */
const seen = (page: string): string =>
  page
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ");

const evil = `<img src=x onerror=alert(1)>"'><script>alert(1)</script>`;

describe("pages of issues and pull requests", { timeout: 600_000 }, () => {
  let world: PagesWorld;
  let url: string;
  let copy: { folder: string; tip: string };
  const [owner, friend, reader, stranger] = [newKey(), newKey(), newKey(), newKey()];
  const about = ["a", `30617:${owner.pubkey}:lamp`];

  let readers = 0;
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(path.startsWith("http") ? path : url + path, {
      redirect: "manual",
      ...init,
      headers: { Accept: "text/html", "X-Forwarded-For": `192.0.2.${readers++ % 250}`, ...init.headers },
    });
  const page = async (path: string, status = 200): Promise<string> => {
    const answer = await ask(path);
    const text = await answer.text();
    assert.equal(answer.status, status, `${path}: ${seen(text).slice(0, 300)}`);
    return text;
  };
  const text = async (path: string): Promise<string> => seen(await page(path));
  const issue = (subject: string, content = "…", more: string[][] = [], age = 0) =>
    world.publish(reader, kinds.issue, [about, ["subject", subject], ...more], content, age);
  const comment = (key: typeof reader, root: { id: string }, content: string, parent = root.id, age = 0) =>
    world.publish(
      key,
      kinds.comment,
      [
        ["E", root.id],
        ["K", "1621"],
        ["e", parent],
        ["k", "1621"],
      ],
      content,
      age,
    );
  const status = (key: typeof reader, kind: number, id: string, age = 0) =>
    world.publish(key, kind, [["e", id, "", "root"], about], "", age);

  before(async () => {
    world = await startPagesWorld({
      NGIT_TRUSTED_PROXIES: "loopback",
      NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: "100000",
      NGIT_EVENTS_PER_MINUTE_PER_IP: "100000",
    });
    url = world.url(owner, "lamp");
    copy = await world.host(
      owner,
      "lamp",
      [{ "a.txt": "one\n", ".message": "Begin" }],
      [
        ["name", "Lamp"],
        ["maintainers", friend.pubkey],
      ],
    );
    await world.publish(owner, 0, [], JSON.stringify({ name: "Ada" }));
  });
  after(() => world.close());

  test("issues are listed open and closed, by label and by words of their titles", async () => {
    await issue("Too bright at night", "…", [["t", "light"]], 900);
    const closed = await issue("Too dark", "…", [["t", "light"]], 890);
    await status(friend, 1632, closed.id, 800);
    const kept = await issue("Too loud", "…", [], 880);
    await status(stranger, 1632, kept.id, 700);
    const open = await text("/issues");
    assert.match(open, /2 open 1 closed/);
    assert.match(open, /Too loud .*Too bright at night light/);
    assert.doesNotMatch(open, /Too dark/);
    assert.match(await text("/issues?state=closed"), /Too dark closed light opened/);
    const dark = await text("/issues?q=bri+too");
    assert.match(dark, /1 open 0 closed .*Too bright/);
    assert.doesNotMatch(dark, /Too loud/);
    assert.match(await text("/issues?label=light"), /1 open 1 closed light All labels Too bright/);
    assert.match(await text("/issues?q=zebra"), /No open issue fits/);
    assert.match(await page("/issues"), /<a href="[^"]*\/issues" aria-current="page">Issues <span class="number">2</);
    assert.match(await page(""), /Issues <span class="number">2<\/span>/);
  });

  test("an issue is shown with its text, its thread, its history, and who may close it", async () => {
    const root = await issue("It **flickers**", "When it *rains*:\n\n- first\n- second\n", [["t", "weather"]], 600);
    const first = await comment(friend, root, "I see it too.", root.id, 500);
    await comment(reader, root, "Second thought", root.id, 400);
    await comment(stranger, root, "An answer to the friend", first.id, 300);
    await status(friend, 1632, root.id, 200);
    await status(reader, 1630, root.id, 100);
    await status(stranger, 1631, root.id, 50);
    await world.publish(friend, 1985, [["e", root.id], about, ["L", "#t"], ["l", "electric", "#t"]], "", 40);
    const shown = await page(`/issues/${root.id}`);
    const words = seen(shown);
    assert.match(shown, /<em>rains<\/em>.*<li>first<\/li>/s);
    assert.match(words, /It \*\*flickers\*\*.* open .*weather.* electric/);
    assert.match(
      words,
      /I see it too\..*An answer to the friend.*Second thought.*closed.*closed it.*open.*opened it again/,
    );
    assert.match(shown, /class="comment depth-1"[^>]*>.*?An answer to the friend/s);
    assert.doesNotMatch(words, /resolved/);
    assert.match(words, /Its author and the maintainers may close it or open it again: .*Ada/);
    assert.ok(shown.includes(npubOf(friend.pubkey)));
    assert.match(words, /answer in gitworkshop.*ngit/);
    for (const other of [
      noteOf(root.id as never),
      neventOf({ id: root.id as never, relays: [], author: undefined, kind: undefined }),
    ]) {
      const led = await ask(`/issues/${other}`);
      assert.deepEqual([led.status, led.headers.get("location")], [302, `${new URL(url).pathname}/issues/${root.id}`]);
    }
    const led = await ask(`/issues/${first.id}`);
    assert.equal(led.headers.get("location"), `${new URL(url).pathname}/issues/${root.id}#c-${first.id.slice(0, 12)}`);
    assert.equal(
      (await ask(`/pulls/${root.id}`)).headers.get("location"),
      `${new URL(url).pathname}/issues/${root.id}`,
    );
    for (const path of [
      `/issues/${"1".repeat(64)}`,
      "/issues/x",
      `/issues/${root.id}/files`,
      `/issues/${root.id}/x/y`,
      "/text",
      "/text/x",
    ])
      await page(path, 404);
  });

  test("what was written with a status is shown below it, as text with markup and within the same bounds", async () => {
    const root = await issue("It hums", "…", [], 660);
    const say = (key: typeof reader, kind: number, content: string, age: number) =>
      world.publish(key, kind, [["e", root.id, "", "root"], about], content, age);
    await say(friend, 1632, "Not *ours* to mend.", 600);
    await say(reader, 1630, "", 500);
    const long = await say(friend, 1631, `${evil}\n\n${"many words ".repeat(1_300)}`, 400);
    await say(stranger, 1632, "A stranger's word", 300);
    for (let at = 0; at < 14; at++) await say(friend, 1631, `Again ${"many words ".repeat(1_300)}`, 200 - at);
    const shown = await page(`/issues/${root.id}`);
    assert.match(shown, /Not <em>ours<\/em> to mend/);
    assert.match(seen(shown), /closed it .*Not ours to mend\. .*opened it again .*resolved it .*many words/);
    assert.doesNotMatch(seen(shown), /stranger's word|No text/);
    assert.doesNotMatch(shown, /<script>|<img src=x/);
    // All texts of a page together are bounded.
    assert.match(seen(shown), /It goes on: the whole text/);
    assert.ok(shown.length < 300_000, `${shown.length} characters`);
    assert.match(await (await ask(`/text/${long.id}`)).text(), /many words/);
  });

  test("a pull request shows its commits and files against where it began, and is merged when the default branch has it", async () => {
    await world.git(copy.folder, "switch", "--quiet", "-c", "change");
    await world.git(copy.folder, "commit", "--quiet", "--allow-empty", "-m", "Prepare <the> lamp");
    await writeFile(`${copy.folder}/a.txt`, "two\n");
    await world.git(copy.folder, "commit", "--quiet", "-am", "Turn it on");
    const first = await world.git(copy.folder, "rev-parse", "HEAD");
    const pull = await world.publish(
      reader,
      kinds.pullRequest,
      [about, ["c", first], ["clone", url], ["subject", "Light the lamp"], ["branch-name", "change"]],
      "It is *dark*.",
      90,
    );
    await world.git(copy.folder, "push", "--quiet", url, `change:refs/nostr/${pull.id}`);
    const list = await text("/pulls");
    assert.match(list, /1 open 0 closed .*Light the lamp/);
    const talk = await page(`/pulls/${pull.id}`);
    assert.match(talk, /It is <em>dark<\/em>/);
    assert.match(seen(talk), new RegExp(`open.*at ${first.slice(0, 8)}.*git fetch .*refs/nostr/${pull.id}`));
    assert.match(
      await text(`/pulls/${pull.id}/commits`),
      new RegExp(`Turn it on .*Prepare <the> lamp .*Since ${copy.tip.slice(0, 8)}`),
    );
    assert.match(await text(`/pulls/${pull.id}/files`), /Against .*1 file \+1 −1 .*a\.txt.* −one .*\+two/);

    await writeFile(`${copy.folder}/a.txt`, "three\n");
    await world.git(copy.folder, "commit", "--quiet", "-am", "Brighter");
    const second = await world.git(copy.folder, "rev-parse", "HEAD");
    const update = await world.publish(
      reader,
      kinds.pullRequestUpdate,
      [about, ["E", pull.id], ["P", reader.pubkey], ["c", second], ["clone", url]],
      "",
      60,
    );
    await world.git(copy.folder, "push", "--quiet", url, `change:refs/nostr/${update.id}`);
    assert.match(await text(`/pulls/${pull.id}`), new RegExp(`pushed ${second.slice(0, 8)}`));
    assert.match(await text(`/pulls/${pull.id}/files`), /\+three/);
    assert.equal(
      (await ask(`/pulls/${update.id}`)).headers.get("location"),
      `${new URL(url).pathname}/pulls/${pull.id}#c-${update.id.slice(0, 12)}`,
    );

    // Merged by somebody who tells nobody.
    await world.git(copy.folder, "switch", "--quiet", "main");
    await world.git(copy.folder, "merge", "--quiet", "--no-ff", "-m", "Merge it", "change");
    const tip = await world.git(copy.folder, "rev-parse", "HEAD");
    await world.publish(
      owner,
      30618,
      [
        ["d", "lamp"],
        ["refs/heads/main", tip],
        ["HEAD", "ref: refs/heads/main"],
      ],
      "",
      -1,
    );
    await world.git(copy.folder, "push", "--quiet", url, "main");
    assert.match(await text("/pulls"), /0 open 1 closed/);
    assert.match(await text("/pulls?state=closed"), /Light the lamp merged/);
    assert.match(await text(`/pulls/${pull.id}`), /merged .*Its commit is in the default branch/);
    // It still shows what it brought.
    assert.match(await text(`/pulls/${pull.id}/files`), /−one .*\+three/);
    assert.match(await text(`/pulls/${pull.id}/commits`), /Brighter.*Turn it on.*Prepare/);
    // Who says that it is closed is heard all the same.
    await status(friend, 1632, pull.id);
    assert.match(await text("/pulls?state=closed"), /Light the lamp closed/);
  });

  test("a series of patches is one thread, with its titles, texts and changes", async () => {
    const mail = (subject: string, change: string) =>
      `From ${copy.tip} Mon Sep 17 00:00:00 2001\nFrom: A <a@example.com>\nDate: Mon, 16 Nov 2026 10:00:00 +0000\nSubject: ${subject}\n\nBecause of ${change}.\n---\n a.txt | 2 +-\n\ndiff --git a/a.txt b/a.txt\nindex 1..2 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+${change}\n-- \n2.47.0\n`;
    const first = await world.publish(
      reader,
      kinds.patch,
      [about, ["t", "root"]],
      mail("[PATCH 1/2] A subject that is so long that git\n folded it", "steam"),
      80,
    );
    const second = await world.publish(
      reader,
      kinds.patch,
      [about, ["e", first.id, "", "reply"]],
      mail("[PATCH 2/2] More", "oil"),
      70,
    );
    const list = await text("/pulls");
    assert.match(list, /1 open .*A subject that is so long that git folded it patch/);
    assert.doesNotMatch(list, /PATCH|More opened/);
    const talk = await text(`/pulls/${first.id}`);
    assert.match(talk, /Because of steam\..*added the patch More/);
    assert.doesNotMatch(talk, /diff --git/);
    assert.match(
      await text(`/pulls/${first.id}/commits`),
      /A subject that is so long that git folded it More 2 patches/,
    );
    assert.match(await text(`/pulls/${first.id}/files`), /Patch 1 of 2 .*\+steam/);
    assert.match(await text(`/pulls/${first.id}/files?page=2`), /Patch 2 of 2 More .*\+oil/);
    assert.equal(
      (await ask(`/pulls/${second.id}`)).headers.get("location"),
      `${new URL(url).pathname}/pulls/${first.id}#c-${second.id.slice(0, 12)}`,
    );
    const raw = await ask(`/text/${second.id}`);
    assert.match(raw.headers.get("content-type") ?? "", /^text\/plain/);
    assert.match(raw.headers.get("content-security-policy") ?? "", /sandbox/);
    assert.match(await raw.text(), /^From /);
  });

  test("a stranger's patch in answer to a series is in its conversation, and not one of the series", async () => {
    const mail = (subject: string, change: string) =>
      `Subject: ${subject}\n\nText\n---\ndiff --git a/a.txt b/a.txt\n@@ -1 +1 @@\n-one\n+${change}\n`;
    const series = (key: typeof reader, subject: string, change: string, first?: { id: string }) =>
      world.publish(
        key,
        kinds.patch,
        [about, first ? ["e", first.id, "", "reply"] : ["t", "root"]],
        mail(subject, change),
        first ? 60 - subject.length : 60,
      );
    const first = await series(reader, "[PATCH 1/2] Begin it", "steam");
    const foreign = await series(stranger, "[PATCH 2/2] End", "poison", first);
    await series(friend, "[PATCH 2/2] Rather", "water", first);
    await series(reader, "[PATCH 2/2] End it well", "oil", first);
    const commits = await text(`/pulls/${first.id}/commits`);
    assert.match(commits, /Begin it End it well 2 patches/);
    assert.match(await text(`/pulls/${first.id}/files?page=2`), /Patch 2 of 2 End it well .*\+oil/);
    assert.doesNotMatch(await text(`/pulls/${first.id}/files?page=3`), /poison|water/);
    const talk = await page(`/pulls/${first.id}`);
    assert.match(
      seen(talk),
      /answered with the patch End .*answered with the patch Rather .*added the patch End it well/,
    );
    assert.ok(talk.includes(`/text/${foreign.id}`), "its text can be read");
  });

  test("threat 14: scripts in titles, texts, labels, names and patches stay text on every page of a thread", async () => {
    const hostile = newKey();
    const body = `${evil}\n\n[click](javascript:alert(1)) ![p](https://evil.example/x.png) <svg onload=alert(1)> [x](data:text/html,x)`;
    const root = await world.publish(hostile, kinds.issue, [about, ["subject", evil], ["t", evil.slice(0, 40)]], body);
    await world.publish(
      hostile,
      0,
      [],
      JSON.stringify({ name: evil, picture: "javascript:alert(1)", website: "javascript:alert(1)" }),
    );
    await comment(hostile, root, body);
    const patch = await world.publish(
      hostile,
      kinds.patch,
      [about, ["t", "root"]],
      `Subject: [PATCH] ${evil}\n\n${evil}\n---\ndiff --git a/${evil} b/${evil}\n@@ -1 +1 @@ ${evil}\n-${evil}\n+x\n`,
    );
    const pages = [
      "/issues",
      `/issues/${root.id}`,
      "/pulls",
      `/pulls/${patch.id}`,
      `/pulls/${patch.id}/files`,
      `/pulls/${patch.id}/commits`,
      `/issues?q=${encodeURIComponent(evil)}&label=${encodeURIComponent(evil)}`,
    ];
    for (const path of pages) {
      const shown = await page(path);
      assert.doesNotMatch(shown, /<script>|<img src=x|<svg onload|href="javascript:|href="data:|src="https/, path);
      assert.doesNotMatch(shown.replace(/"[^"]*"/g, '""'), /<[a-z]+[^>]*\son(?:error|load)=/, path);
    }
  });

  test("a private word, a stranger's repository and an unknown event are on no page", async () => {
    const other = newKey();
    await world.host(other, "other", [{ a: "1" }]);
    const foreignIssue = await world.publish(
      reader,
      kinds.issue,
      [
        ["a", `30617:${other.pubkey}:other`],
        ["subject", "Elsewhere"],
      ],
      "x",
    );
    assert.doesNotMatch(await text("/issues"), /Elsewhere/);
    await page(`/issues/${foreignIssue.id}`, 404);
    await page(`/text/${foreignIssue.id}`, 404);
  });

  test("lists and long threads come in pages, and long texts are cut with a way to all of them", async () => {
    for (let at = 0; at < 65; at++) await issue(`Flood number ${at}`, "x", [["t", "flood"]], 5_000 + at);
    assert.match(await text("/issues?label=flood"), /65 open .*Flood number 0 .*Flood number 29 .*Page 1 of 3/);
    assert.match(await text("/issues?label=flood&page=3"), /Flood number 64 .*Page 3 of 3/);
    assert.match(await text("/issues?label=flood&page=999"), /Page 3 of 3/);
    const root = await issue("Long talk", `Start ${"word ".repeat(20_000)}`, [], 4_000);
    for (let at = 0; at < 45; at++)
      await comment(stranger, root, `Remark ${at} ${at < 8 ? "many words ".repeat(2_500) : ""}`, root.id, 3_000 - at);
    const first = await page(`/issues/${root.id}`);
    assert.match(seen(first), /It goes on: the whole text .*Remark 0 .*Remark 39 .*Page 1 of 2/);
    assert.ok(first.length < 400_000, `${first.length} characters`);
    assert.match(await text(`/issues/${root.id}?page=2`), /Remark 40 .*Remark 44/);
    const whole = await ask(`/text/${root.id}`);
    assert.equal((await whole.text()).length, 6 + 100_000);
  });
});
