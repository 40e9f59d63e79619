// The pages over HTTP, on the whole server: what each one says, to whom, with which headers; git beside them.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { npubOf } from "../../src/nostr/nip19.js";
import { runProgram } from "../harness/git-server.js";
import { newKey, type PagesWorld, startPagesWorld, until } from "./pages-world.js";

const browser = { Accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
const ask = (url: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
  fetch(url, { method, headers: { ...browser, ...headers }, redirect: "manual" });
const textOf = async (url: string): Promise<string> => await (await ask(url)).text();
/** The text a reader sees. */
const seen = (page: string): string =>
  page
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ");

const owner = newKey();
const maintainer = newKey();
const stranger = newKey();
const reader = newKey();
const identifier = "lighthouse";
const name = "Light & House";
const about = ["a", `30617:${owner.pubkey}:${identifier}`];

describe("pages", { timeout: 900_000 }, () => {
  let world: PagesWorld;
  let url: string;
  let copy: { folder: string; tip: string };

  before(async () => {
    world = await startPagesWorld({ NGIT_RELAY_NAME: "test <harbour>", NGIT_PARTIAL_STATE_GRACE_SECS: "1" });
    url = world.url(owner, identifier);
    copy = await world.host(
      owner,
      identifier,
      [
        { "README.md": "# Light\n\nIt **turns**.\n<script>alert(1)</script>\n", ".message": "Build the tower" },
        { lamp: "on", ".message": "Light the <lamp>" },
      ],
      [
        ["name", name],
        ["description", "A lamp\u202E for ships"],
        ["maintainers", maintainer.pubkey],
        ["web", "javascript:alert(1)", "https://example.com/light"],
      ],
    );
    // Counted a moment after the release; a page must not change under a test.
    await until(async () => seen(await textOf(`${world.origin}/status`)).includes("1 repository"));
  });
  after(() => world.close());

  test("a repository's page says what it is, where it is, who keeps it, and what is in it", async () => {
    const answer = await ask(url);
    assert.equal(answer.status, 200);
    const page = await answer.text();
    const text = seen(page);
    for (const part of [
      name,
      "A lamp",
      `git clone ${url}`,
      `git clone nostr://${npubOf(owner.pubkey)}/${encodeURIComponent(`ws://${world.domain}`)}/${identifier}`,
      "signed and complete",
      copy.tip.slice(0, 8),
      "2 commits on main",
      "Light the <lamp>",
      "Build the tower",
      "It turns .",
    ]) {
      assert.ok(text.includes(part), `${part} is not in: ${text}`);
    }
    assert.ok(page.includes(npubOf(maintainer.pubkey)));
    assert.match(page, /https:\/\/gitworkshop\.dev\/naddr1/);
    assert.match(page, /href="https:\/\/example\.com\/light" rel="nofollow/);
    assert.doesNotMatch(page, /javascript:|<script>/);
    const tip = copy.tip.slice(0, 8);
    const branches = seen(await textOf(`${url}/branches`));
    assert.match(branches, new RegExp(`1 branch, 0 tags.*main default ${tip} ${tip} as signed`));
  });

  test("threat 14: no page allows anything inline or from elsewhere", async () => {
    for (const address of [
      url,
      `${world.origin}/`,
      `${world.origin}/status`,
      `${world.origin}/nowhere`,
      `${world.origin}/?q=x`,
    ]) {
      const answer = await ask(address);
      const policy = answer.headers.get("content-security-policy") ?? "";
      assert.match(policy, /^default-src 'none'; style-src 'self'; script-src 'self';/, address);
      assert.doesNotMatch(policy, /unsafe|https:|\*/);
      assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
      assert.equal(answer.headers.get("access-control-allow-origin"), "*");
      const page = await answer.text();
      assert.doesNotMatch(page, /<style|style=|<script(?! src=)|\son\w+=/);
      assert.match(page, /test &lt;harbour&gt;/);
    }
  });

  test("each page has an ETag, a 304 for who has it, and a HEAD", async () => {
    for (const address of [url, `${world.origin}/`, `${world.origin}/status`, `${world.origin}/assets/holdfast.css`]) {
      const first = await ask(address);
      const body = await first.text();
      const tag = first.headers.get("etag") ?? "";
      assert.match(tag, /^"[\w-]{22}"$/);
      const again = await ask(address, { "If-None-Match": `W/"other", W/${tag}` });
      assert.deepEqual([again.status, await again.text()], [304, ""], address);
      assert.equal((await ask(address, { "If-None-Match": '"other"' })).status, 200);
      const head = await ask(address, {}, "HEAD");
      assert.deepEqual([head.status, head.headers.get("content-length")], [200, String(Buffer.byteLength(body))]);
      assert.equal(await head.text(), "");
    }
  });

  test("files whose names hold a digest of their content are kept for long", async () => {
    const page = await textOf(url);
    for (const [, path] of page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)) {
      assert.match(path ?? "", /-[0-9a-f]{10}\.\w+$/);
      const answer = await ask(world.origin + path);
      assert.equal(answer.status, 200);
      assert.match(answer.headers.get("cache-control") ?? "", /immutable/);
    }
    const unversioned = await ask(`${world.origin}/assets/holdfast.js`);
    assert.equal(unversioned.headers.get("cache-control"), "no-cache");
  });

  test("git is not affected by the page at its URL", async () => {
    const refs = await fetch(`${url}/info/refs?service=git-upload-pack`, { headers: browser });
    assert.equal(refs.headers.get("content-type"), "application/x-git-upload-pack-advertisement");
    const cloned = await runProgram("git", ["ls-remote", url, "refs/heads/main"]);
    assert.equal(cloned.stdout.split("\t")[0], copy.tip);
    const person = url.slice(0, url.lastIndexOf("/"));
    const place = url.slice(world.origin.length);
    const others = [person, `${person}.atom`, "/status", `/badge${place.replace(/git$/, "svg")}`];
    for (const page of [url, `${url}/tree/main`, ...others.map((path) => new URL(path, world.origin).href)]) {
      for (const method of ["POST", "PUT", "DELETE"]) {
        const refused = await fetch(page, { method });
        assert.deepEqual([refused.status, refused.headers.get("allow")], [405, "GET, HEAD"], `${method} ${page}`);
      }
    }
  });

  test("a page shows which issues and pull requests the newest word by author or maintainer leaves open", async () => {
    const issue = (subject: string, age: number) =>
      world.publish(reader, 1621, [about, ["subject", subject]], "…", age);
    const status = (key: typeof reader, kind: number, id: string, age: number) =>
      world.publish(key, kind, [["e", id, "", "root"], about], "", age);
    await issue("Too bright", 900);
    const closed = await issue("Too dark", 890);
    await status(maintainer, 1632, closed.id, 800);
    const reopened = await issue("Too <b>loud</b>", 880);
    await status(maintainer, 1632, reopened.id, 700);
    await status(reader, 1630, reopened.id, 600);
    const attacked = await issue("Too high", 870);
    await status(stranger, 1632, attacked.id, 100);
    await world.publish(
      reader,
      1618,
      [about, ["c", copy.tip], ["subject", "Polish the lens"], ["clone", url]],
      "…",
      500,
    );
    const issues = seen(await textOf(`${url}/issues`));
    assert.deepEqual(
      ["Too bright", "Too dark", "Too <b>loud</b>", "Too high"].map((title) => issues.includes(title)),
      [true, false, true, true],
    );
    assert.match(issues, /3 open 1 closed/);
    assert.match(seen(await textOf(`${url}/issues?state=closed`)), /Too dark closed/);
    // Its tip is not pushed to refs/nostr but the commit is here: it is served at once, and merged, because main has it.
    assert.match(seen(await textOf(`${url}/pulls?state=closed`)), /Polish the lens merged/);
  });

  test("a state that lists what is not here makes the page and the badge say so", async () => {
    const other = newKey();
    const badgeUrl = `${world.origin}/badge/${npubOf(other.pubkey)}/partly.svg`;
    await world.announce(other, "partly");
    const { folder, tip } = await world.workingCopy({ a: "1" });
    const state = [
      ["d", "partly"],
      ["refs/heads/main", tip],
      ["refs/heads/lost", "1".repeat(40)],
    ];
    await world.publish(other, 30618, state);
    await world.git(folder, "push", "--quiet", world.url(other, "partly"), "main");
    await until(async () => (await (await ask(badgeUrl)).text()).includes("branches: signed, not complete yet"));
    const first = seen(await textOf(world.url(other, "partly")));
    assert.match(first, /signed, not complete yet.*Some of what its maintainers signed is not here yet/);
    const text = seen(await textOf(`${world.url(other, "partly")}/branches`));
    assert.match(text, /lost 11111111 none missing here/);
    assert.match(text, new RegExp(`main default ${tip.slice(0, 8)} ${tip.slice(0, 8)} as signed`));
    const lighthouse = await ask(`${world.origin}/badge/${npubOf(owner.pubkey)}/${identifier}.svg`);
    assert.equal(lighthouse.headers.get("content-type"), "image/svg+xml");
    assert.match(await lighthouse.text(), /branches: signed and complete/);
    assert.equal((await ask(`${world.origin}/badge/${npubOf(other.pubkey)}/nothing.svg`)).status, 404);
  });

  test("threat 31: a waiting repository's page says only that it waits", async () => {
    const waiting = newKey();
    await world.announce(waiting, "hush", [
      ["name", "Secret name"],
      ["description", "Secret description"],
      ["maintainers", stranger.pubkey],
    ]);
    const answer = await ask(world.url(waiting, "hush"));
    const page = await answer.text();
    assert.equal(answer.status, 200);
    assert.match(page, /waits for its data/);
    assert.doesNotMatch(page, /Secret|hush|npub1/);
    const landing = await textOf(`${world.origin}/`);
    assert.doesNotMatch(landing, /Secret|hush/);
    assert.doesNotMatch(seen(await textOf(`${world.origin}/?q=Secret`)), /Secret name/);
    assert.match(
      await (await ask(`${world.origin}/badge/${npubOf(waiting.pubkey)}/hush.svg`)).text(),
      /branches: waiting for data/,
    );
  });

  test("threat 31: people only a waiting announcement lists are not on a page", async () => {
    await world.announce(maintainer, identifier, [["maintainers", stranger.pubkey]]);
    const page = await textOf(url);
    assert.ok(page.includes(npubOf(maintainer.pubkey)));
    assert.ok(!page.includes(npubOf(stranger.pubkey)));
  });

  test("unknown and deleted repositories are a 404 that says what would make them exist", async () => {
    const gone = newKey();
    await world.host(gone, "gone", [{ a: "1" }]);
    assert.equal((await ask(world.url(gone, "gone"))).status, 200);
    await world.publish(gone, 5, [["a", `30617:${gone.pubkey}:gone`]]);
    for (const address of [
      world.url(gone, "gone"),
      world.url(owner, "nothing"),
      world.url(owner, "<script>x</script>"),
    ]) {
      const answer = await ask(address);
      const page = await answer.text();
      assert.equal(answer.status, 404);
      assert.match(seen(page), /kind 30617/);
      assert.doesNotMatch(page, /<script>/);
    }
  });

  test("the landing page tells what happened and how to use the server", async () => {
    const text = seen(await textOf(`${world.origin}/`));
    for (const part of [
      "Sort by activity name size",
      `${name} by`,
      "A lamp",
      "How to begin",
      "ngit init --grasp-server",
      "GRASP-01",
      `ws://${world.domain}`,
      "Newest activity",
    ]) {
      assert.ok(text.includes(part), `${part} is not in: ${text}`);
    }
    const relay = await fetch(`${world.origin}/`, { headers: { Accept: "application/nostr+json" } });
    assert.equal(((await relay.json()) as { name: string }).name, "test <harbour>");
  });

  test("a search finds repositories by words of name and description, and escapes what was asked", async () => {
    assert.match(
      seen(await textOf(`${world.origin}/?q=lamp+ship`)),
      new RegExp(`1 repository for “ lamp ship ” ${name}`),
    );
    assert.match(seen(await textOf(`${world.origin}/?q=submarine`)), /0 repositories/);
    const attacked = await textOf(`${world.origin}/?q=${encodeURIComponent('"><script>alert(1)</script>')}`);
    assert.doesNotMatch(attacked, /<script>/);
  });

  test("repositories stand on the front page as cards, by activity, name or size, by topic, so many a page", async () => {
    const many = newKey();
    for (let at = 0; at < 3; at++) {
      await world.host(
        many,
        `boat-${at}`,
        [{ a: "x".repeat((at + 1) * 5_000) + Math.random() }],
        [
          ["name", `Boat ${3 - at}`],
          ["t", at === 0 ? "sail" : "engine"],
        ],
      );
    }
    const cards = async (query = "") =>
      [...(await textOf(`${world.origin}/${query}`)).matchAll(/<li><h3><a href="[^"]*">(?:<bdi>)?([^<]*)/g)].map(
        ([, title = ""]) => title,
      );
    const byName = await cards("?sort=name");
    assert.deepEqual(
      byName.filter((title) => title.startsWith("Boat")),
      ["Boat 1", "Boat 2", "Boat 3"],
    );
    assert.deepEqual(byName, [...byName].sort(new Intl.Collator("en").compare));
    assert.deepEqual(await cards("?topic=sail"), ["Boat 3"]);
    assert.deepEqual((await cards("?topic=engine")).sort(), ["Boat 1", "Boat 2"]);
    const front = await textOf(`${world.origin}/`);
    assert.match(front, /href="\/\?topic=engine">(?:<bdi>)?engine(?:<\/bdi>)? <span class="quiet">2</);
    // One line for a repository, whatever happened in it.
    const activity = front.split('id="activity"')[1] ?? "";
    assert.equal(activity.split(`>${name.replace("&", "&amp;")}<`).length, 2);
    // A new issue is what happened last, an announcement that goes takes its card along.
    await world.publish(
      reader,
      1621,
      [
        ["a", `30617:${many.pubkey}:boat-2`],
        ["subject", "It leaks"],
      ],
      "",
      -2,
    );
    assert.match(
      seen((await textOf(`${world.origin}/`)).split('id="activity"')[1] ?? ""),
      /^>Newest activity It leaks issue .* in Boat 1/,
    );
    await world.publish(many, 5, [["a", `30617:${many.pubkey}:boat-2`]], "", -3);
    assert.ok(!(await cards()).includes("Boat 1"));
    assert.doesNotMatch(await textOf(`${world.origin}/`), /It leaks/);
  });

  test("a person has a page with profile, repositories and a picture of the year, and a feed", async () => {
    await world.publish(
      owner,
      0,
      [],
      JSON.stringify({
        name: "Ada <b>",
        about: "Keeps lamps",
        website: "https://example.com/ada",
        picture: "javascript:alert(1)",
        nip05: "ada@example.com",
      }),
    );
    const own = `${world.origin}/${npubOf(owner.pubkey)}`;
    const page = await textOf(own);
    assert.match(
      seen(page),
      /Ada <b> Keeps lamps .*ada@example\.com .*https:\/\/example\.com\/ada .*signed events in the last year/,
    );
    assert.match(seen(page), new RegExp(`Repositories 1 ${name} by Ada <b>`));
    assert.match(page, /<svg class="spark"[^>]*role="img" aria-label="\d+ signed events? in the last year/);
    assert.doesNotMatch(page, /javascript:|<b>/);
    const theirs = seen(await textOf(`${world.origin}/${npubOf(maintainer.pubkey)}`));
    assert.match(theirs, new RegExp(`Repositories None here\\. Maintains ${name} by Ada <b>`));
    const nobody = await ask(`${world.origin}/${npubOf(newKey().pubkey)}`);
    assert.equal(nobody.status, 404);
    assert.match(seen(await nobody.text()), /nothing of this key/);
    const slip = await ask(`${own}/`);
    assert.deepEqual([slip.status, slip.headers.get("location")], [302, `/${npubOf(owner.pubkey)}`]);
    for (const [feed, title] of [
      [`${own}.atom`, `Push to ${name.replace("&", "&amp;")}`],
      [`${url}/activity.atom`, "Light the &lt;lamp&gt;"],
    ] as const) {
      const answer = await ask(feed);
      assert.equal(answer.headers.get("content-type"), "application/atom+xml; charset=utf-8");
      const text = await answer.text();
      assert.match(text, /^<\?xml[\s\S]*<feed xmlns="http:\/\/www\.w3\.org\/2005\/Atom">/);
      assert.ok(text.includes(title), text);
      assert.match(text, new RegExp(`<link href="http://${world.domain}/`));
      assert.ok(page.includes(".atom") && (await textOf(url)).includes("/activity.atom"));
    }
  });

  test("the status page has counts and versions", async () => {
    const text = seen(await textOf(`${world.origin}/status`));
    assert.match(text, /0 of 0 relays connected/);
    assert.match(text, /git \d+\.\d+/);
    assert.match(text, /Hunting queue 0 jobs/);
  });

  test("any other address is a 404: a page for browsers, a line for programs", async () => {
    const page = await ask(`${world.origin}/nowhere`);
    assert.deepEqual([page.status, page.headers.get("content-type")], [404, "text/html; charset=utf-8"]);
    const line = await fetch(`${world.origin}/nowhere`, { headers: { Accept: "*/*" } });
    assert.deepEqual([line.status, await line.text()], [404, "not found\n"]);
  });
});

test("pages work below a base path, and their links stay there", { timeout: 900_000 }, async (t) => {
  const world = await startPagesWorld({}, "/deep");
  t.after(() => world.close());
  const key = newKey();
  await world.host(key, "here", [{ README: "plain <b>text</b>\n" }]);
  const page = await textOf(world.url(key, "here"));
  assert.match(page, /plain &lt;b&gt;text/);
  for (const [, path = ""] of page.matchAll(/(?:href|src|action)="(\/[^"]*)"/g)) {
    assert.ok(path.startsWith("/deep/"), path);
    assert.equal((await ask(world.origin + path)).status, 200, path);
  }
  assert.match(await textOf(`${world.origin}/deep/`), /action="\/deep\/"/);
});

test("who asks for too many pages that start git is told to come back later, and others are served", {
  timeout: 900_000,
}, async (t) => {
  const world = await startPagesWorld({ NGIT_TRUSTED_PROXIES: "loopback" });
  t.after(() => world.close());
  const key = newKey();
  const url = world.url(key, "busy");
  await world.announce(key, "busy");
  const { folder } = await world.workingCopy({ a: "0" });
  // More than a slow machine is given again while it goes through them.
  const branches = Array.from({ length: 120 }, (_, turn) => `refs/heads/b${turn}`);
  const made = branches.map(
    (name, turn) => `commit ${name}\ncommitter A <a@example.com> ${1_700_000_000 + turn} +0000\ndata 0\n\n`,
  );
  await runProgram("git", ["fast-import", "--quiet"], { cwd: folder, input: made.join("") });
  const listed = await world.git(folder, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads/b*");
  const oids = new Map(listed.split("\n").map((line) => line.split(" ") as [string, string]));
  const refs = branches.map((name): [string, string] => [name, oids.get(name) ?? ""]);
  /** Another branch is the head: another commit to look at. */
  const show = (turn: number) =>
    world.publish(key, 30618, [["d", "busy"], ...refs, ["HEAD", `ref: refs/heads/b${turn}`]], "", -turn);
  await show(0);
  await world.git(folder, "push", "--quiet", url, "refs/heads/b*:refs/heads/b*");
  const from = (ip: string) => ask(url, { "X-Forwarded-For": ip });
  // The same commit again and again starts nothing.
  for (let turn = 0; turn < 60; turn++) assert.equal((await from("192.0.2.1")).status, 200);
  const statuses: number[] = [];
  let refused: Response | undefined;
  for (let turn = 1; turn < refs.length && !refused; turn++) {
    await show(turn);
    const answer = await from("192.0.2.1");
    statuses.push(answer.status);
    if (answer.status === 429) refused = answer;
  }
  assert.ok(refused, `never refused: ${statuses}`);
  assert.ok(statuses.length > 25, `refused after ${statuses.length}`);
  assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
  assert.equal((await from("192.0.2.2")).status, 200);
});
