// threats.md rows 3, 8 and 14: names made to climb or to collide, things planted in a repository, and markup.

import assert from "node:assert/strict";
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { CheckResult } from "../../src/operator/repositories.js";
import { askServer } from "../../src/operator/socket.js";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { type Story, stateEvent } from "../harness/grasp-story.js";
import { ask, exchange, pkt } from "../harness/raw-http.js";
import { type ChildServer, dropInEnvironment } from "../harness/server.js";
import { beginWatched, filesBelow, traceless } from "../harness/traceless.js";

const program = "dist/src/main.js";

describe("threats 3 and 14: identifiers and markup", () => {
  let server: ChildServer;
  let story: Story;
  const alice = new Person();
  before(async () => {
    ({ server, story } = await beginWatched());
  });
  after(() => story.end());

  const odd = [
    "..",
    ".",
    "../escape",
    "..%2fescape",
    "/etc/passwd",
    "a/b",
    ".git",
    "x",
    "x.git",
    "x.git.git",
    "\u00fc",
    "u\u0308",
    "Case",
    "case",
    "CASE",
    "n".repeat(300),
    "\u202egnp.exe",
    "dot.",
    "x.lock",
    " ",
    "-rf",
    "=78",
    "=sha256-x",
    "con",
    "a\\b",
    "%00",
    "tab\tbell\x07",
    "\ud83d\ude80",
  ];

  it("threat 3: every identifier in a d tag has a place of its own inside the data directory, and its own data", async () => {
    const outside = (): string[] =>
      Object.keys(filesBelow(server.folder)).filter((path) => !/^(git|tmp|relay|work\d+)\//.test(path));
    const before = outside();
    const work = await story.workingCopy();
    const tips = new Map<string, string>();
    for (const identifier of odd) {
      await story.announce(alice, identifier);
      tips.set(identifier, await work.commit(`of ${JSON.stringify(identifier)}`));
      await story.state(alice, identifier, { "refs/heads/main": tips.get(identifier) ?? "" });
    }
    // Control bytes are signed names like any other, but no URL leads there.
    const reachable = odd.filter((identifier) => !/[\x00-\x1f\x7f]/.test(identifier));
    for (const identifier of reachable) {
      const tip = tips.get(identifier) ?? "";
      await work.must("push", "-q", story.url(alice, identifier), `${tip}:refs/heads/main`);
    }
    for (const identifier of reachable) {
      const shown = await ask(`${story.url(alice, identifier)}/info/refs?service=git-upload-pack`);
      assert.equal(/([0-9a-f]{40}) refs\/heads\/main/.exec(shown.text)?.[1], tips.get(identifier), identifier);
      const lower = story.url(alice, identifier).replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase());
      assert.equal((await ask(`${lower}/info/refs?service=git-upload-pack`)).status, 200, "any hex case");
    }
    assert.equal(readdirSync(join(server.gitPath, alice.npub)).length, odd.length, "one directory each");
    assert.deepEqual(readdirSync(server.gitPath), [alice.npub]);
    assert.deepEqual(outside(), before);
    assert.equal((await story.publish(story.announcement(alice, ""))).ok, false, "an empty one is refused");
    assert.equal((await story.publish(story.announcement(alice, "nul\0"))).ok, false, "one with NUL is refused");
  });

  it("threat 3: a URL that climbs, is encoded twice, holds NUL or names nobody is 404 and makes nothing", async () => {
    const bob = new Person();
    const { npub } = bob;
    for (const identifier of ["x", "case"]) await story.announce(bob, identifier);
    const names = [
      "..%2f..%2fetc%2fpasswd",
      "%2e%2e%2f%2e%2e%2fetc",
      "%2Fetc%2Fpasswd",
      "..%252fescape",
      "x%00",
      "x%00.git",
      "%00",
      "",
      "x%0d%0ay",
      "x%ff",
      "x%c0%af",
      "x%zz",
      "x%2",
      "X",
      "x.git.git.git",
      "cASE",
      "%EF%BC%8E%EF%BC%8E",
      "a".repeat(300),
      "a".repeat(5_000),
      "\u202e".repeat(3),
    ];
    const rests = ["info/refs?service=git-upload-pack", "git-upload-pack", "git-receive-pack", "objects/info/packs"];
    const paths = names.flatMap((name) => rests.map((rest) => `/${npub}/${onTheWire(name)}.git/${rest}`));
    paths.push(
      `/${npub}/../../${npub}/x.git/info/refs?service=git-upload-pack`,
      `/${npub}/./x.git/../x.git/config`,
      `//${npub}/x.git/info/refs?service=git-upload-pack`,
      `/${npub}//x.git/info/refs?service=git-upload-pack`,
      `/${npub}/x.git/../case.git/HEAD`,
      `/${npub}/x.git/HEAD`,
      `/${npub}/x.git/config`,
      `/${npub}/x.git/objects/../config`,
      `/${npub.toUpperCase()}/x.git/info/refs?service=git-upload-pack`,
      `/${npub.slice(0, -1)}q/x.git/info/refs?service=git-upload-pack`,
      `/${bob.pubkey}/x.git/info/refs?service=git-upload-pack`,
      `/${npub}/x/../info/refs?service=git-upload-pack`,
    );
    await traceless(server, async () => {
      for (const path of paths) {
        for (const method of ["GET", "POST"]) {
          const head = `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\n0000`;
          const answer = await exchange(server.origin, Buffer.from(head, "utf8"));
          assert.match(answer, /^HTTP\/1\.1 (404|400|405) /, `${method} ${path.slice(0, 200)}: ${answer.slice(0, 60)}`);
          assert.doesNotMatch(answer, /root:|\[core\]|ref: refs/);
        }
      }
    });
  });

  it("threat 14: markup in identifier, name, description, issue and README is text, under a policy without inline script", async () => {
    const evil = `"><script>alert(1)</script><img src=x onerror=alert(2)>'`;
    const identifier = `a${evil}`;
    const readme = [
      evil,
      "[click](javascript:alert(3))",
      "[data](data:text/html,<script>alert(4)</script>)",
      '![i](https://elsewhere.example/x.png" onload="alert(5))',
      "<svg onload=alert(6)>",
      "<iframe srcdoc='<script>alert(7)</script>'></iframe>",
      "<style>*{background:url(//elsewhere.example)}</style>",
      "```html\n</code></pre><script>alert(8)</script>\n```",
      "&lt;script&gt;",
      "<a href='java\tscript:alert(9)'>x</a>",
    ].join("\n\n");
    const more = [
      ["name", evil],
      ["description", evil],
      ["web", `javascript:alert(10)`],
      ["t", evil],
    ];
    await story.announce(alice, identifier, more);
    const work = await story.workingCopy();
    const tip = await work.commit(readme, "README.md");
    await story.state(alice, identifier, { "refs/heads/main": tip });
    await work.must("push", "-q", story.url(alice, identifier), "main");
    const issue = alice.sign(
      1621,
      [
        ["a", alice.coordinate(identifier)],
        ["subject", evil],
      ],
      evil,
    );
    await story.accepted(issue);
    const pages = [
      `/${alice.npub}/${encodeURIComponent(identifier)}.git`,
      `/${alice.npub}/${encodeURIComponent(identifier)}`,
      "/",
      `/?q=${encodeURIComponent(evil)}`,
      `/${encodeURIComponent(evil)}`,
      "/status",
    ];
    // The first look warms what pages keep.
    for (const path of pages) await ask(server.origin + path, { headers: { Accept: "text/html" } });
    let shown = 0;
    await traceless(server, async () => {
      for (const path of pages) {
        const { status, headers, body } = await ask(server.origin + path, { headers: { Accept: "text/html" } });
        const text = body.toString("utf8");
        if (status === 200 && text.includes("alert(1)")) shown++;
        for (const { tag, bare } of tagsOf(text)) {
          assert.doesNotMatch(bare, /\son\w+\s*=|\sstyle\s*=|srcdoc/i, tag);
          assert.doesNotMatch(bare, /^<(iframe|style|object|embed|base|form(?! ))/i, tag);
          assert.doesNotMatch(tag, /(href|src|action)="\s*(javascript|data|vbscript):/i, tag);
          if (/^<(script|img|link)\b/i.test(tag)) assert.match(tag, /(src|href)="\//, "from this server");
        }
        if (!String(headers["content-type"]).startsWith("text/html")) continue;
        const policy = String(headers["content-security-policy"]);
        assert.match(policy, /default-src 'none'/, path);
        assert.doesNotMatch(policy, /unsafe|\*/, path);
        assert.equal(headers["x-content-type-options"], "nosniff");
      }
    });
    assert.ok(shown >= 1, "the markup was shown, as text");
  });
});

/** Bytes beyond ASCII go encoded over the wire; all else of a name stands as it is written here. */
const onTheWire = (name: string): string => name.replace(/[^\x21-\x7e]/g, encodeURIComponent);

/** Every tag of a page, without the values of its attributes: what is left of them was written by the server. */
function tagsOf(page: string): { readonly tag: string; readonly bare: string }[] {
  return [...page.matchAll(/<[a-z!][^>]*>/gi)].map(([tag]) => ({ tag, bare: tag.replace(/"[^"]*"/g, '""') }));
}

describe("threat 8: planted in a repository", () => {
  let server: ChildServer;
  let story: Story;
  const alice = new Person();
  before(async () => {
    ({ server, story } = await beginWatched({}, { backend: "lmdb" }));
  });
  after(() => story.end());

  const listed = (unsound: CheckResult["unsound"]): string => unsound.flatMap((each) => each.problems).join("\n");
  async function problems(): Promise<string> {
    const asked = { operation: "repos.fsck", parameters: {} } as const;
    const outcome = await askServer(join(server.folder, "relay"), asked, () => undefined);
    assert.ok(outcome?.ok, JSON.stringify(outcome));
    return listed((outcome.result as CheckResult).unsound);
  }
  /** The same by the verb, which ends with 1 when there are any. */
  async function problemsByVerb(): Promise<string> {
    const env = dropInEnvironment(server.folder, Number(new URL(server.origin).port), { backend: "lmdb" });
    const ended = await runProgram(process.execPath, [program, "repos", "fsck", "--json"], { env });
    assert.equal(ended.code, 1, ended.stderr);
    return listed((JSON.parse(ended.stdout) as CheckResult).unsound);
  }

  it("threat 8: hooks, config, alternates, grafts, attributes and links run nothing, whatever is asked, and fsck reports each", async () => {
    const { work, tip, url } = await story.hosted(alice, "planted");
    assert.equal(await problems(), "");
    const directory = story.directory(alice, "planted");
    const proof = join(server.folder, "proof");
    const script = `#!/bin/sh\ntouch ${proof}\n`;
    const tool = join(server.folder, "tool");
    writeFileSync(tool, script, { mode: 0o755 });

    mkdirSync(join(directory, "hooks"));
    const hooks =
      "applypatch-msg pre-receive update post-receive post-update reference-transaction proc-receive push-to-checkout pre-auto-gc post-index-change fsmonitor-watchman sendemail-validate";
    for (const hook of hooks.split(" ")) writeFileSync(join(directory, "hooks", hook), script, { mode: 0o755 });
    appendFileSync(
      join(directory, "config"),
      [
        "[core]",
        `\tsshCommand = ${tool}`,
        `\thooksPath = ${join(directory, "hooks")}`,
        `\tfsmonitor = ${tool}`,
        `\talternateRefsCommand = ${tool}`,
        `\tpager = ${tool}`,
        `\teditor = ${tool}`,
        `\tgitProxy = ${tool}`,
        `\taskPass = ${tool}`,
        "\tattributesFile = /dev/null",
        "[uploadpack]",
        `\tpackObjectsHook = ${tool}`,
        "[diff]",
        `\texternal = ${tool}`,
        '[diff "planted"]',
        `\ttextconv = ${tool}`,
        `\tcommand = ${tool}`,
        '[filter "planted"]',
        `\tclean = ${tool}`,
        `\tsmudge = ${tool}`,
        `\tprocess = ${tool}`,
        '[tar "tar"]',
        `\tcommand = ${tool}`,
        "[credential]",
        `\thelper = !${tool}`,
        "[gpg]",
        `\tprogram = ${tool}`,
        "[extensions]",
        "\tpartialClone = evil",
        '[remote "evil"]',
        `\turl = ext::${tool}`,
        "\tpromisor = true",
        `\tuploadpack = ${tool}`,
        `[include]\n\tpath = ${join(server.folder, "more")}`,
        "",
      ].join("\n"),
    );
    writeFileSync(join(server.folder, "more"), `[core]\n\tsshCommand = ${tool}\n`);
    mkdirSync(join(directory, "info"), { recursive: true });
    writeFileSync(join(directory, "info", "attributes"), "* diff=planted filter=planted\n");
    writeFileSync(join(directory, "info", "grafts"), `${tip} ${tip}\n`);
    writeFileSync(join(directory, "objects", "info", "alternates"), "/nonexistent\n");
    symlinkSync("/etc", join(directory, "refs", "heads", "etc"));
    symlinkSync("/etc/passwd", join(directory, "refs", "heads", "passwd"));

    const two = await work.commit("two");
    const answer = await story.publish(stateEvent(alice, "planted", { "refs/heads/main": two }));
    assert.ok(answer.ok || /git could not follow/.test(answer.message), answer.message);
    const pushed = await work.git("push", url, "main");
    const cloned = await work.git("clone", "-q", "--bare", url, "../planted-copy.git");
    await work.git("fetch", "-q", url, "1".repeat(40));
    // An object that is not here must not be fetched from where a planted config says it is.
    const body = Buffer.concat([
      pkt("command=fetch"),
      Buffer.from("0001"),
      pkt(`want ${"2".repeat(40)}\n`),
      pkt("done\n"),
      Buffer.from("0000"),
    ]);
    await ask(`${url}/git-upload-pack`, { method: "POST", body, headers: { "Git-Protocol": "version=2" } });
    const page = await ask(`${server.origin}/${alice.npub}/planted.git`, { headers: { Accept: "text/html" } });
    assert.equal(existsSync(proof), false, "nothing ran");
    // git itself may be too frightened of such a repository to serve it; it must not be obedient to it.
    assert.ok(pushed.code === 0 || /could not finish the push/.test(pushed.stderr), pushed.stderr);
    assert.ok(cloned.code === 0 || cloned.stderr !== "", cloned.stderr);
    assert.ok(page.status === 200 || page.status === 500, String(page.status));
    assert.doesNotMatch(page.text, /root:/);

    const found = await problemsByVerb();
    assert.equal(existsSync(proof), false, "nor does fsck run anything");
    assert.equal(server.child.exitCode, null, "one such repository does not end the server");
    for (const expected of [
      /hooks are planted/,
      /config is not the one this server writes/,
      /alternates is planted/,
      /refs\/heads\/etc is a symbolic link/,
      /refs\/heads\/passwd is a symbolic link/,
      /info\/attributes is planted/,
      /info\/grafts is planted/,
    ]) {
      assert.match(found, expected);
    }
    for (const name of ["hooks", "info", "objects/info/alternates", "refs/heads/etc", "refs/heads/passwd"]) {
      rmSync(join(directory, name), { recursive: true });
    }
  });

  it("threat 8: a planted config does not survive a start, and a repository git cannot read keeps no server down", async () => {
    await story.hosted(alice, "broken");
    await story.publish(stateEvent(alice, "broken", { "refs/heads/main": "1".repeat(40) }));
    await story.relay.close();
    await server.stop();
    rmSync(join(story.directory(alice, "broken"), "objects"), { recursive: true });
    writeFileSync(join(story.directory(alice, "broken"), "objects"), "not a directory");
    ({ server, story } = await beginWatched({}, { backend: "lmdb", folder: server.folder }));
    const found = await problems();
    assert.doesNotMatch(found, /config is not the one/);
    assert.match(found, /not a git repository/);
    assert.ok((await story.advertised(alice, "planted"))["refs/heads/main"], "the others are served");
    assert.equal(existsSync(join(server.folder, "proof")), false);
    assert.equal(server.child.exitCode, null);
  });
});
