// The code pages over HTTP, on the whole server with real git: what they show, what they refuse, and what strangers can put
// into a repository without harm to a reader or to the server.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { newKey, type PagesWorld, startPagesWorld } from "./pages-world.js";

const evil = `<img src=x onerror=alert(1)>`;
const quote = `"><script>alert(1)</script>`;
/** What git takes: no spaces, colons or brackets of other kinds. */
const hostileTag = `v2"'><script>alert(1)</script><svg/onload=alert(1)>&lt;b&gt;`;

/** What a reader sees. */
const seen = (page: string): string =>
  page
    // Marked words stand in a line without spaces around them.
    .replace(/<\/?b>/g, "")
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ");

/** The text of a page as it stands in its source. */
const plain = (page: string): string => page.replace(/<[^>]*>/g, "");

const data = (content: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`data ${Buffer.byteLength(content)}\n`), Buffer.from(content), Buffer.from("\n")]);

interface Change {
  readonly branch?: string;
  readonly message: string;
  readonly author?: string;
  /** By path, quoted as fast-import wants it. */
  readonly files?: Readonly<Record<string, string | Buffer>>;
  readonly others?: string;
}

const stream = (changes: readonly Change[]): Buffer =>
  Buffer.concat(
    changes.flatMap(({ branch = "main", message, author = "Ada", files = {}, others = "" }, index) => [
      Buffer.from(`commit refs/heads/${branch}\n`),
      Buffer.from(`committer ${author} <a@example.com> ${1_700_000_000 + index} +0000\n`),
      data(message),
      Buffer.from(others),
      ...Object.entries(files).flatMap(([path, content]) => [Buffer.from(`M 100644 inline ${path}\n`), data(content)]),
      Buffer.from("\n"),
    ]),
  );

describe("code pages", { timeout: 600_000 }, () => {
  let world: PagesWorld;
  let url: string;
  const owner = newKey();
  const oids = new Map<string, string>();

  let readers = 0;
  /** Another reader each time: one alone is given fewer pages than these tests look at. */
  const nextReader = () => ({ "X-Forwarded-For": `192.0.2.${readers++ % 250}` });
  const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url + path, {
      redirect: "manual",
      ...init,
      headers: { Accept: "text/html", ...nextReader(), ...init.headers },
    });
  const page = async (path: string, status = 200): Promise<string> => {
    const answer = await ask(path);
    const text = await answer.text();
    assert.equal(answer.status, status, `${path}: ${seen(text).slice(0, 300)}`);
    return text;
  };

  before(async () => {
    world = await startPagesWorld({ NGIT_TRUSTED_PROXIES: "loopback" });
    url = world.url(owner, "code");
    await world.announce(owner, "code", [["name", "Code"]]);
    const { folder } = await world.workingCopy({ a: "1" });
    const input = stream([
      {
        message: "Begin\n\nWith a body.",
        files: {
          "README.md":
            "# Code\n\nIt **reads**. [a](src/a.ts) ![p](picture.svg) <script>alert(1)</script>\n\n| a |\n|--:|\n| 1 |\n",
          "docs/guide.md": "[up](../src/) [top](/README.md#code) [far](../../../etc/passwd)\n",
          "src/a.ts": "export const a = 1;\nexport const b = 2;\n",
          "src/deep/er/x.txt": "x\n",
          [`"${evil.replaceAll('"', '\\"')}.txt"`]: `${quote}\n`,
          '"caf\\303\\251 \\377.txt"': "not UTF-8\n",
          "picture.svg": "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
          "page.html": "<script>alert(1)</script>",
          "data.bin": Buffer.from([0, 1, 2, 3]),
          "large.txt": "0123456789\n".repeat(120_000),
          "long.txt": `${"y".repeat(300_000)}\n`,
          "many.txt": "\n".repeat(60_000),
          empty: "",
          '"two\\nlines"': "?\n",
          "--output=x": "an option?\n",
        },
      },
      {
        message: `${quote} subject`,
        author: `Ada "&lt;b' x="`,
        files: { "src/a.ts": "export const a = 1;\nexport const b = 3;\n" },
      },
      {
        branch: "feature/deep",
        message: "Elsewhere",
        others: "from refs/heads/main\n",
        files: { "src/new.ts": "1\n" },
      },
      { branch: `-${evil.replace(/[ :]/g, "")}`, message: "A branch like an option", others: "from refs/heads/main\n" },
      { branch: "lost", message: "Nobody reaches this", others: "from refs/heads/main\n" },
    ]);
    const done = await runProgram("git", ["fast-import", "--quiet", "--force"], { cwd: folder, input });
    assert.equal(done.code, 0, done.stderr);
    await world.git(folder, "tag", "-a", "-m", "release", "v1", "main~1");
    await world.git(folder, "tag", "-a", "-m", `${quote} said`, hostileTag, "main");
    const listed = await world.git(folder, "for-each-ref", "--format=%(refname) %(objectname)");
    for (const line of listed.split("\n")) oids.set(line.split(" ")[0] ?? "", line.split(" ")[1] ?? "");
    const pushed = [...oids.keys()];
    const signed = [...oids].filter(([name]) => name !== "refs/heads/lost");
    const state = (refs: [string, string][], age: number) =>
      world.publish(owner, 30618, [["d", "code"], ...refs, ["HEAD", "ref: refs/heads/main"]], "", age);
    // What was on a branch that went is still in git's objects, and reached by nothing.
    await state([...oids], 10);
    await world.git(folder, "push", "--quiet", url, ...pushed.map((name) => `${name}:${name}`));
    oids.set("refs/tags/v1^{}", await world.git(folder, "rev-parse", "v1^{commit}"));
    await state(signed, 0);
  });
  after(() => world.close());

  test("folders, files, history and changes can be read", async () => {
    const first = await page("");
    assert.match(seen(first), /2 commits on main.*src \/.*README\.md.*It reads \./);
    const tree = await page("/tree/main/src");
    assert.match(seen(tree), /Code Issues Pull requests Commits Branches Copies/);
    assert.match(tree, /href="[^"]*\/tree\/main\/src\/deep"/);
    assert.match(seen(tree), /deep \/ Begin .* a\.ts "><script>alert\(1\)<\/script> subject/);
    const blob = await page("/blob/main/src/a.ts");
    assert.match(blob, /<a id="L2" href="#L2">2<\/a>/);
    assert.match(plain(blob), /export const b = 3;/);
    assert.match(blob, /<span class="k">export<\/span> <span class="k">const<\/span> b = <span class="n">3<\/span>;/);
    assert.match(plain(await page("/blob/v1/src/a.ts")), /export const b = 2;/);
    assert.match(seen(await page("/commits/main/src/a.ts")), /subject .*Begin/);
    const commit = seen(await page(`/commit/${oids.get("refs/heads/main")}`));
    assert.match(commit, /2 −export const b = 2; 2 \+export const b = 3;/);
    assert.match(seen(await page("/compare/main...feature/deep")), /1 commit since they parted.*src\/new\.ts/);
    assert.match(seen(await page("/branches")), /feature\/deep.*1 ahead, 0 behind/);
    assert.match(seen(await page("/copies")), /no other server/);
  });

  test("Markdown leads into the repository at the ref that is looked at, and has a source", async () => {
    const root = new URL(url).pathname;
    const first = await page("");
    assert.ok(first.includes(`<a href="${root}/blob/main/src/a.ts">a</a>`), first);
    assert.ok(first.includes(`<img src="${root}/raw/main/picture.svg" alt="p" loading="lazy">`));
    assert.match(first, /<td class="right">1<\/td>/);
    assert.match(first, /&lt;script&gt;alert\(1\)/);
    const guide = await page("/blob/v1/docs/guide.md");
    assert.ok(guide.includes(`<a href="${root}/tree/v1/src">up</a>`), guide);
    assert.ok(guide.includes(`<a href="${root}/blob/v1/README.md#md-code">top</a>`));
    assert.match(guide, /<span>far<\/span>/);
    assert.match(plain(await page("/blob/v1/docs/guide.md?source")), /\[up\]\(\.\.\/src\/\)/);
  });

  test("each line can be traced to the commit that brought it", async () => {
    const blame = await page("/blame/main/src/a.ts");
    const who = /<pre class="who">(.*?)<\/pre>/s.exec(blame)?.[1]?.split("\n") ?? [];
    const [first, second] = [oids.get("refs/tags/v1^{}") ?? "", oids.get("refs/heads/main") ?? ""];
    assert.match(who[0] ?? "", new RegExp(`/commit/${first}" title="Begin">`));
    assert.match(who[1] ?? "", new RegExp(`/commit/${second}" title="&quot;&gt;&lt;script&gt;`));
    assert.match(plain(blame), /export const b = 3;/);
    assert.match(seen(await page("/blame/main/large.txt")), /larger than the 1 MiB/);
    assert.match(seen(await page("/blame/main/many.txt")), /60,000 lines, and 20,000 are looked at/);
    assert.match(seen(await page("/blame/main/data.bin")), /has no lines/);
    assert.match(seen(await page("/blame/main/caf%C3%A9%20%FF.txt")), /not text/);
    assert.match(seen(await page("/blame/main/--output=x")), /an option\?/);
    assert.match(seen(await page("/blame/main/empty")), /This file is empty/);
    assert.equal((await ask("/blame/main/src")).headers.get("location"), `${new URL(url).pathname}/tree/main/src`);
  });

  test("a commit's files can be had as one file, which says its name and is kept by its id only", async () => {
    const tar = await ask("/archive/feature/deep.tar.gz");
    assert.equal(tar.status, 200);
    assert.equal(tar.headers.get("content-disposition"), 'attachment; filename="code-feature-deep.tar.gz"');
    assert.equal(tar.headers.get("content-security-policy"), "default-src 'none'; sandbox");
    const { stdout } = await runProgram("tar", ["-tzf", "-"], { input: Buffer.from(await tar.arrayBuffer()) });
    assert.match(stdout, /^code-feature-deep\/src\/new\.ts$/m);
    const zip = await ask(`/archive/${oids.get("refs/heads/main")}.zip`);
    assert.match(zip.headers.get("cache-control") ?? "", /immutable/);
    assert.equal(Buffer.from(await zip.arrayBuffer()).toString("latin1", 0, 2), "PK");
    const tag = tar.headers.get("etag") ?? "";
    assert.equal((await ask("/archive/feature/deep.tar.gz", { headers: { "If-None-Match": tag } })).status, 304);
    assert.equal((await ask("/archive/main.zip", { method: "HEAD" })).status, 200);
    for (const path of [
      "main",
      "main.rar",
      ".zip",
      "main/src.zip",
      "nothing.zip",
      `${oids.get("refs/heads/lost")}.zip`,
    ]) {
      assert.equal((await ask(`/archive/${path}`)).status, 404, path);
    }
    // One reader is given only so many a minute.
    const flood = { headers: { "X-Forwarded-For": "198.51.100.7" } };
    const answers = await Promise.all(
      Array.from({ length: 12 }, async () => {
        const answer = await ask("/archive/v1.tar.gz", flood);
        await answer.arrayBuffer();
        return answer.status;
      }),
    );
    assert.ok(answers.includes(200) && answers.filter((status) => status === 429).length >= 6, String(answers));
  });

  test("a change is shown in one column or two, with the words that were changed", async () => {
    const commit = `/commit/${oids.get("refs/heads/main")}`;
    const unified = await page(commit);
    assert.match(unified, /−export const b = <b>2<\/b>;/);
    assert.match(unified, /\+export const b = <b>3<\/b>;/);
    const split = await page(`${commit}?view=split`);
    const cells =
      '<td>2</td><td class="del">−export const b = <b>2</b>;</td><td>2</td><td class="add">+export const b = <b>3</b>;</td>';
    assert.ok(split.includes(`<tr>${cells}</tr>`), split);
    assert.match(
      split,
      /<td>1<\/td><td class=""> export const a = 1;<\/td><td>1<\/td><td class=""> export const a = 1;/,
    );
  });

  test("files are found by parts of their names", async () => {
    const found = await page("/find/main?q=DEEP%20x");
    assert.match(found, /href="[^"]*\/blob\/main\/src\/deep\/er\/x\.txt"/);
    assert.doesNotMatch(found, /blob\/main\/src\/a\.ts/);
    assert.match(seen(await page("/find/main?q=nothing%20like%20this")), /No file has that in its name/);
    assert.match(await page(`/find/main?q=${encodeURIComponent(quote)}`), /value="&quot;&gt;&lt;script&gt;/);
    assert.equal((await ask("/find")).headers.get("location"), `${new URL(url).pathname}/find/main`);
    await page("/find/main/src", 404);
  });

  test("names of any bytes lead to their files, and a name of two lines is shown", async () => {
    const tree = await page("/tree/main");
    for (const [, link = ""] of tree.matchAll(/href="([^"]*\/blob\/main\/[^"]*)"/g)) {
      const answer = await fetch(world.origin + link, { headers: nextReader() });
      assert.equal(answer.status, 200, link);
    }
    assert.match(await page("/blob/main/caf%C3%A9%20%FF.txt"), /not UTF-8/);
    assert.match(await page("/blob/main/--output=x"), /an option\?/);
    assert.match(seen(await page("/commits/main/two%0Alines")), /line break/);
    await page("/commits/main/--output=x");
  });

  test("threat 14: scripts in names, messages, authors, branches and contents stay text on every code page", async () => {
    const strange = encodeURIComponent(`${evil}.txt`);
    const branch = encodeURIComponent(`-${evil.replace(/[ :]/g, "")}`);
    // A slash in a name stands in an address as it is.
    const hostile = hostileTag.split("/").map(encodeURIComponent).join("/");
    assert.ok(seen(await page("/branches")).includes("v2\"'><script>alert(1)</script><svg/onload=alert(1)>&lt;b"));
    for (const path of [
      "",
      "/tree/main",
      `/blob/main/${strange}`,
      "/commits/main",
      `/commit/${oids.get("refs/heads/main")}`,
      "/branches",
      `/tree/${branch}`,
      `/commits/${branch}`,
      `/compare/main...${branch}`,
      `/tree/${hostile}`,
      `/commits/${hostile}`,
      `/find/${hostile}`,
      `/blame/${hostile}/src/a.ts`,
      `/compare/${hostile}...main`,
      "/blob/main/page.html",
      "/blob/main/picture.svg",
      `/blame/main/${strange}`,
      "/blame/main/page.html",
      "/find/main",
      `/find/${branch}`,
      `/commit/${oids.get("refs/heads/main")}?view=split`,
    ]) {
      const answer = await ask(path);
      const text = await answer.text();
      assert.equal(answer.status, 200, path);
      assert.doesNotMatch(text, /<img src=x|<script>|<svg|<[^>]*\son\w+=|Ada "/, path);
      assert.match(answer.headers.get("content-security-policy") ?? "", /^default-src 'none'; style-src 'self'/);
    }
  });

  test("raw content is never run: text is plain, the rest is a download, all of it in a sandbox", async () => {
    for (const [file, type, disposition] of [
      ["page.html", "text/plain; charset=utf-8", null],
      ["picture.svg", "image/svg+xml", "attachment"],
      ["data.bin", "application/octet-stream", "attachment"],
      ["large.txt", "text/plain; charset=utf-8", null],
      ["empty", "text/plain; charset=utf-8", null],
    ] as const) {
      const answer = await ask(`/raw/main/${file}`);
      const body = await answer.arrayBuffer();
      assert.deepEqual(
        [answer.status, answer.headers.get("content-type"), answer.headers.get("content-disposition")],
        [200, type, disposition],
      );
      assert.equal(answer.headers.get("content-security-policy"), "default-src 'none'; sandbox");
      assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
      assert.equal(answer.headers.get("content-length"), String(body.byteLength));
      const tag = answer.headers.get("etag") ?? "";
      assert.equal((await ask(`/raw/main/${file}`, { headers: { "If-None-Match": tag } })).status, 304);
      const head = await ask(`/raw/main/${file}`, { method: "HEAD" });
      assert.deepEqual([head.status, head.headers.get("content-length")], [200, String(body.byteLength)]);
    }
    const byId = await ask(`/raw/${oids.get("refs/heads/main")}/src/a.ts`);
    assert.match(byId.headers.get("cache-control") ?? "", /immutable/);
    const byName = await ask("/raw/main/src/a.ts");
    assert.equal(byName.headers.get("cache-control"), "no-cache");
    assert.doesNotMatch(
      (await ask(`/tree/${oids.get("refs/heads/main")}`)).headers.get("cache-control") ?? "",
      /immutable/,
    );
  });

  test("what is large, long, empty or not text is said so, with a way to get it", async () => {
    assert.match(seen(await page("/blob/main/large.txt")), /larger than the 1 MiB a page shows: open it raw/);
    assert.match(seen(await page("/blob/main/data.bin")), /not text: download it/);
    assert.match(seen(await page("/blob/main/many.txt")), /first 20,000 of 60,000 lines/);
    assert.match(seen(await page("/blob/main/empty")), /This file is empty/);
    assert.ok((await page("/blob/main/long.txt")).includes("y".repeat(300_000)));
  });

  test("paths that are not there are a page that says so, whatever tricks they try", async () => {
    for (const path of [
      "/tree/main/nothing",
      "/tree/nothing",
      "/blob/main/src%2Fa.ts",
      "/raw/main/..%2f..%2fetc/passwd",
      "/raw/main/%2e%2e/%2e%2e/config",
      "/raw/main/%00",
      "/blob/main/%zz",
      "/tree/main//src",
      `/tree/${"a/".repeat(400)}b`,
      `/tree/main/${"a/".repeat(250)}b`,
      "/tree/refs/nostr/x",
      "/tree/--help",
      "/commits/--all",
      "/commits/main..v1",
      "/commit/main",
      "/commit/-1",
      `/commit/${"0".repeat(40)}`,
      `/commit/${"1".repeat(64)}`,
      `/commit/${oids.get("refs/tags/v1")}`,
      "/compare/main",
      "/compare/--output=x...main",
      "/nonsense",
      "/config",
      "/raw/main/src",
    ]) {
      // fetch would tidy the path up.
      const answer = await runProgram("curl", [
        "-s",
        "--path-as-is",
        "-H",
        `X-Forwarded-For: ${nextReader()["X-Forwarded-For"]}`,
        "-w",
        "\n%{http_code}",
        url + path,
      ]);
      assert.match(answer.stdout, /\n404$/, path);
      assert.match(seen(answer.stdout), /Nothing here|No repository here/, path);
    }
  });

  test("a commit that nothing reaches any longer is not shown, although git still has it", async () => {
    const lost = oids.get("refs/heads/lost") ?? "";
    for (const path of [`/commit/${lost}`, `/tree/${lost}`, `/raw/${lost}/README.md`, `/commits/${lost}`]) {
      await page(path, 404);
    }
    await page("/tree/lost", 404);
  });

  test("a commit that only a pull request reaches says so on its pages, and is on no branch", async () => {
    const contributor = newKey();
    const { folder, tip } = await world.workingCopy({ "proposed.txt": "please\n" });
    const about = ["a", `30617:${owner.pubkey}:code`] as const;
    const event = await world.publish(contributor, 1618, [
      [...about],
      ["c", tip],
      ["clone", url],
      ["subject", "Please"],
    ]);
    await page(`/commit/${tip}`, 404);
    await world.git(folder, "push", "--quiet", url, `main:refs/nostr/${event.id}`);
    for (const path of [
      `/commit/${tip}`,
      `/tree/${tip}`,
      `/blob/${tip}/proposed.txt`,
      `/commits/${tip}`,
      `/blame/${tip}/proposed.txt`,
    ]) {
      assert.match(seen(await page(path)), /No branch and no tag has this commit: it comes from a pull request/, path);
    }
    const { folder: clone } = await world.workingCopy({ a: "1" });
    await world.git(clone, "fetch", "--quiet", url, "main");
    await world.git(clone, "reset", "--quiet", "--hard", "FETCH_HEAD");
    await world.git(clone, "commit", "--quiet", "--allow-empty", "-m", "Proposed");
    const based = await world.git(clone, "rev-parse", "HEAD");
    const tags = [[...about], ["c", based], ["clone", url], ["subject", "Based"]];
    const other = await world.publish(contributor, 1618, tags);
    await world.git(clone, "push", "--quiet", url, `HEAD:refs/nostr/${other.id}`);
    const note = new RegExp(`No branch and no tag has ${based.slice(0, 8)}: it comes from a pull request`);
    assert.match(seen(await page(`/compare/main...${based}`)), note);
    assert.match(seen(await page(`/compare/${based}...main`)), note);
    assert.doesNotMatch(seen(await page("/compare/main...feature/deep")), /No branch and no tag/);
    assert.doesNotMatch(seen(await page(`/commit/${oids.get("refs/heads/main")}`)), /No branch and no tag/);
    await page("/blob/main/proposed.txt", 404);
  });

  test("slips are led to the page that was meant; git follows them too", async () => {
    const root = new URL(url).pathname;
    for (const [path, target] of [
      ["/", root],
      ["/tree/main/", `${root}/tree/main`],
      ["/tree/main/src/a.ts", `${root}/blob/main/src/a.ts`],
      ["/blob/main/src", `${root}/tree/main/src`],
      ["/blame", root],
      ["/tree", root],
      ["/commits", `${root}/commits/main`],
      ["/issues/", `${root}/issues`],
    ] as const) {
      const answer = await ask(path);
      assert.deepEqual([answer.status, answer.headers.get("location")], [302, target], path);
    }
    const short = url.replace(/\.git$/, "");
    const answer = await fetch(`${short}/tree/main?x=1`, { redirect: "manual" });
    assert.equal(answer.headers.get("location"), `${root}/tree/main?x=1`);
    assert.match(await world.git("/", "ls-remote", short, "refs/heads/main"), /^[0-9a-f]{40}\t/);
  });
});
