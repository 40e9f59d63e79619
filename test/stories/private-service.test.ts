// A private server for a team (GRASP-08), as its members use it: the relay, git with a signature and with a machine token, the
// pages, and an operator who lets people in and out while it runs. Attacks are in threats/private.test.ts.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { holdfast } from "../cli/run.js";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { basic, type PrivateService, signedHeader, startPrivate } from "../harness/private-service.js";
import { ask } from "../harness/raw-http.js";
import { startInProcess } from "../harness/server.js";

const withHeader = (header: string): string[] => ["-c", `http.extraHeader=Authorization: ${header}`];
/** Nothing on the machine that runs the tests may answer for a credential. */
const noHelper = ["-c", "credential.helper="];

describe("a private service", { timeout: 300_000 }, () => {
  let service: PrivateService;
  let work: WorkingCopy;
  let url: string;
  let tip: string;

  before(async () => {
    service = await startPrivate();
    const { alice, story } = service;
    await story.announce(alice, "plans");
    work = await story.workingCopy();
    tip = await work.commit("one of plans");
    await story.state(alice, "plans", { "refs/heads/main": tip });
    url = story.url(alice, "plans");
  });
  after(async () => {
    await service.story.end();
  });

  const clone = (into: string, ...options: string[]) =>
    runProgram("git", [...noHelper, ...options, "clone", "-q", url, join(service.server.folder, into)], {
      cwd: service.server.folder,
    });

  /** A commit with 3 MB in it that git cannot make smaller: its push is a probe and then a chunked body. */
  async function largeCommit(): Promise<string> {
    await writeFile(join(work.folder, "large"), randomBytes(3_000_000));
    return work.commit("large", `note-${randomBytes(3).toString("hex")}`);
  }

  test("stock git pushes and clones with a signed header, one signature for all requests of both", async () => {
    const { alice } = service;
    const header = withHeader(signedHeader(alice, url));
    await work.must(...header, "push", "-q", url, "main");
    const cloned = await clone("by-header", ...header);
    assert.equal(cloned.code, 0, cloned.stderr);
    tip = await largeCommit();
    await service.story.state(alice, "plans", { "refs/heads/main": tip });
    await work.must(...withHeader(signedHeader(alice, url)), "push", "-q", url, "main");
    const remote = await work.must(...withHeader(signedHeader(service.bob, url)), "ls-remote", url, "refs/heads/main");
    assert.equal(remote, `${tip}\trefs/heads/main`);
  });

  test("stock git clones and pushes 3 MB with a machine token as its password, and with one that only reads it cannot push", async () => {
    const { alice, operate, server, story } = service;
    const repository = `${alice.npub}/plans`;
    const reader = await operate("tokens.add", { member: alice.npub, repository, days: 1, note: "CI" });
    const pusher = await operate("tokens.add", { member: alice.npub, push: true });
    const at = (token: string): string => url.replace("http://", `http://ci:${token}@`);
    const into = join(server.folder, "by-token");
    const cloned = await runProgram("git", [...noHelper, "clone", "-q", at(reader.token), into], {
      cwd: server.folder,
    });
    assert.equal(cloned.code, 0, cloned.stderr);
    tip = await largeCommit();
    await story.state(alice, "plans", { "refs/heads/main": tip });
    const refused = await work.git(...noHelper, "push", "-q", at(reader.token), "main");
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /403/);
    await work.must(...noHelper, "push", "-q", at(pusher.token), "main");
    assert.equal(await story.isServed((await story.served({ kinds: [30618] }))[0] as never), true);
    // As user name, with an empty password: how some CI systems write it.
    const asUser = await work.git(
      ...noHelper,
      "ls-remote",
      url.replace("http://", `http://${pusher.token}:@`),
      "refs/heads/main",
    );
    assert.equal(asUser.stdout.trim(), `${tip}\trefs/heads/main`);
    const { tokens } = await operate("tokens.list", {});
    const shown = new Map(tokens.map(({ id, right, repository: of, works, note }) => [id, [right, of, works, note]]));
    assert.deepEqual(shown.get(reader.id), ["read", repository, true, "CI"]);
    assert.deepEqual(shown.get(pusher.id), ["push", null, true, ""]);
    await operate("tokens.revoke", { id: pusher.id });
    const revoked = await work.git(...noHelper, "ls-remote", at(pusher.token));
    assert.notEqual(revoked.code, 0);
    assert.match(revoked.stderr, /Authentication failed|could not read/i);
  });

  test("a member publishes with two commands; a key that is no member is told which key must become one", async () => {
    const { server, operate, alice } = service;
    const home = join(server.folder, "home");
    const folder = join(home, "hello");
    await mkdir(home);
    const run = (...args: string[]) => holdfast(args, { HOME: home });
    const outside = await run("init", folder, "--server", server.domain);
    assert.equal(outside.code, 1);
    const npub = /does not let (npub1\w+) in: that key must be a member there/.exec(outside.stderr)?.[1] ?? "";
    assert.notEqual(npub, "", outside.stderr);
    await operate("lists.add", { list: "private-members", entry: npub });
    const first = await run("init", folder, "--server", server.domain, "--json");
    assert.equal(first.code, 0, first.stderr);
    assert.deepEqual(JSON.parse(first.stdout).pushed, ["refs/heads/main"]);
    await writeFile(join(folder, "large"), randomBytes(2_000_000));
    const identity = ["-c", "user.name=me", "-c", "user.email=me@example.com"];
    for (const args of [
      ["add", "large"],
      ["commit", "-q", "-m", "large"],
    ])
      assert.equal((await runProgram("git", [...identity, ...args], { cwd: folder })).code, 0);
    const second = await run("publish", folder, "--json");
    assert.equal(second.code, 0, second.stderr);
    const { url: published, refs } = JSON.parse(second.stdout) as { url: string; refs: Record<string, string> };
    const { token } = await operate("tokens.add", { member: alice.npub });
    const there = await work.must(
      ...noHelper,
      "ls-remote",
      published.replace("http://", `http://ci:${token}@`),
      "main",
    );
    assert.equal(there, `${refs["refs/heads/main"]}\trefs/heads/main`);
    assert.match((await run("publish", folder)).stdout, /^private +git asks for a token as password/m);
    const settings = await readFile(join(folder, ".git/config"), "utf8");
    assert.doesNotMatch(settings, /Authorization/, "no signature stays behind");
  });

  test("an address without .git leads a member to the repository, by token too, and tells a stranger nothing", async () => {
    const { alice, bob, operate, server } = service;
    const short = url.replace(/\.git$/, "");
    const { token } = await operate("tokens.add", { member: bob.npub, repository: `${alice.npub}/plans` });
    const at = short.replace("http://", `http://ci:${token}@`);
    const into = join(server.folder, "short");
    const cloned = await runProgram("git", [...noHelper, "clone", "-q", at, into], { cwd: server.folder });
    assert.equal(cloned.code, 0, cloned.stderr);
    const asked = `${short}/info/refs?service=git-upload-pack`;
    assert.equal((await ask(asked)).status, 401);
    const other = await operate("tokens.add", { member: bob.npub, repository: `${alice.npub}/other` });
    assert.equal((await ask(asked, { headers: { authorization: basic("ci", other.token) } })).status, 401);
  });

  test("the verbs make, list and revoke tokens, and refuse one for a key that is no member", async () => {
    const { bob, stranger, server } = service;
    const environment = {
      NGIT_PRIVATE_MODE: "true",
      NGIT_DOMAIN: server.domain,
      NGIT_RELAY_DATA_PATH: join(server.folder, "relay"),
    };
    const added = await holdfast(["tokens", "add", bob.npub, "--push", "--days", "2"], environment);
    assert.equal(added.code, 0, added.stderr);
    assert.match(
      added.stdout,
      /^hft_[0-9a-f]{12}_[\w-]{43}\n\nThis is shown once\. It may fetch and push every repository until /,
    );
    const id = added.stdout.slice(4, 16);
    const listed = await holdfast(["tokens", "list"], environment);
    assert.match(listed.stdout, new RegExp(`^${id} +push +yes `, "m"));
    assert.ok(!listed.stdout.includes(added.stdout.split("\n")[0] ?? "?"));
    assert.equal((await holdfast(["tokens", "revoke", id], environment)).code, 0);
    assert.equal((await holdfast(["tokens", "revoke", id], environment)).code, 1);
    const refused = await holdfast(["tokens", "add", stranger.npub], environment);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /is no member: add it first/);
  });

  test("a member writes issues and reads them, is answered to COUNT, and hears them live", async () => {
    const { alice, bob, connectAs } = service;
    const client = await connectAs(bob);
    await client.ask("live", { kinds: [1621] });
    const issue = bob.sign(
      1621,
      [
        ["a", alice.coordinate("plans")],
        ["subject", "hello"],
      ],
      "text",
    );
    const heard = client.next(([verb, sub]) => verb === "EVENT" && sub === "live");
    assert.deepEqual((await client.publish(issue)).slice(2), [true, ""]);
    assert.equal((await heard)[2] && ((await heard)[2] as { id: string }).id, issue.id);
    const counted = client.next(([verb]) => verb === "COUNT");
    client.send("COUNT", "n", { kinds: [1621] });
    assert.deepEqual((await counted)[2], { count: 1 });
    await client.close();
  });

  test("a member signs in with the browser's key, sees pages, badge, status and counts, none of which is kept, and signs out", async () => {
    const { server, alice } = service;
    const { origin } = server;
    const signIn = await ask(`${origin}/sign-in`, {
      method: "POST",
      headers: { origin, authorization: signedHeader(alice, `${origin}/sign-in`, "POST") },
    });
    assert.equal(signIn.status, 200, signIn.text);
    const cookie = String(signIn.headers["set-cookie"]).split(";")[0] ?? "";
    const page = `/${alice.npub}/plans.git`;
    const below = ["/tree/main", "/commits/main", "/branches", "/copies", "/issues", "/pulls", "/activity.atom"];
    const people = [`/${alice.npub}`, `/${alice.npub}.atom`, "/?sort=name"];
    const paths = ["/", "/status", page, `/badge/${alice.npub}/plans.svg`, "/api/status", ...people];
    for (const path of [...paths, ...below.map((rest) => page + rest)]) {
      const answer = await ask(`${origin}${path}`, { headers: { cookie, accept: "text/html" } });
      assert.equal(answer.status, 200, `${path}: ${answer.text}`);
      assert.equal(answer.headers["cache-control"], "private, no-store", path);
      assert.equal(answer.headers.etag, undefined, path);
      assert.doesNotMatch(answer.text, /<h1>Sign in/, path);
    }
    assert.match((await ask(`${origin}${page}`, { headers: { cookie, accept: "text/html" } })).text, /plans/);
    // For admins, also here.
    assert.equal((await ask(`${origin}/api/repos`, { headers: { cookie } })).status, 401);
    const again = await ask(`${origin}/sign-in`, { headers: { cookie } });
    assert.deepEqual([again.status, again.headers.location], [303, "/"]);
    assert.equal((await ask(`${origin}/sign-out`, { method: "POST", headers: { cookie } })).status, 303);
    assert.equal((await ask(`${origin}${page}`, { headers: { cookie } })).status, 401);
  });

  test("a member reads code, history and raw files, none of which is kept; whoever is outside gets one answer for all", async () => {
    const { server, alice, story } = service;
    const { origin } = server;
    await mkdir(join(work.folder, "info/lfs/deep"), { recursive: true });
    await mkdir(join(work.folder, "info/git-upload-pack"), { recursive: true });
    await writeFile(join(work.folder, "info/lfs/deep/note"), "kept in lfs\n");
    await writeFile(join(work.folder, "info/git-upload-pack/refs"), "a name of git's\n");
    tip = await work.commit("names that git has too", "info/refs");
    await story.state(alice, "plans", { "refs/heads/main": tip });
    await work.must(...withHeader(signedHeader(alice, url)), "push", "-q", url, "main");
    const signIn = await ask(`${origin}/sign-in`, {
      method: "POST",
      headers: { origin, authorization: signedHeader(alice, `${origin}/sign-in`, "POST") },
    });
    const cookie = String(signIn.headers["set-cookie"]).split(";")[0] ?? "";
    const page = `/${alice.npub}/plans.git`;
    const shown: readonly (readonly [string, RegExp])[] = [
      ["", /names that git has too/],
      ["/tree/main", /<bdi>info<\/bdi>/],
      ["/tree/main/info/lfs/deep", /note/],
      ["/blob/main/info/lfs/deep/note", /kept in lfs/],
      ["/blob/main/info/git-upload-pack/refs", /a name of git/],
      ["/blob/main/info/refs", /names that git has too/],
      ["/blob/main/info/refs?service=git-upload-pack", /names that git has too/],
      ["/raw/main/info/lfs/deep/note", /^kept in lfs\n$/],
      ["/commits/main", /names that git has too/],
      [`/commit/${tip}`, /names that git has too/],
      ["/branches", /main/],
      ["/copies", /<h1/],
      [`/compare/${tip}...main`, /<h1/],
    ];
    const answers = new Map<string, string>();
    for (const [rest, expected] of shown) {
      for (const accept of ["text/html", "*/*"]) {
        const inside = await ask(`${origin}${page}${rest}`, { headers: { cookie, accept } });
        assert.equal(inside.status, 200, `${rest}: ${inside.text}`);
        assert.match(inside.text, expected, rest);
        assert.equal(inside.headers["cache-control"], "private, no-store", rest);
        assert.equal(inside.headers.etag, undefined, rest);
        assert.doesNotMatch(inside.text, /naddr1|nevent1/, rest);
        for (const method of ["GET", "HEAD", "POST", "PUT", "DELETE"]) {
          const outside = await ask(`${origin}${page}${rest}`, { method, headers: { accept } });
          assert.equal(outside.status, 401, `${method} ${rest}`);
          const { date: _date, ...headers } = outside.headers;
          const kind = `${method} ${accept}`;
          const whole = JSON.stringify([headers, outside.text]);
          assert.equal(whole, answers.get(kind) ?? whole, `${kind} ${rest}`);
          answers.set(kind, whole);
          assert.doesNotMatch(whole, /plans|Basic/);
        }
      }
    }
    assert.equal((await ask(`${origin}/sign-out`, { method: "POST", headers: { cookie } })).status, 303);
    assert.equal((await ask(`${origin}${page}/raw/main/file`, { headers: { cookie } })).status, 401);
  });

  test("a program of a member reads a page with one signed request each", async () => {
    const { server, alice } = service;
    const path = `${server.origin}/${alice.npub}/plans.git`;
    const authorization = signedHeader(alice, path);
    const first = await ask(path, { headers: { authorization } });
    assert.equal(first.status, 200);
    assert.equal((await ask(path, { headers: { authorization } })).status, 401, "a second use");
  });

  test("an operator lets a member in and out at run time, also by a ban, and sees who is one", async () => {
    const { server, story, operate, connectAs, alice } = service;
    const carol = new Person();
    const outside = await connectAs(carol);
    assert.match(String((await outside.ask("q", { kinds: [30617] })).end[2]), /^restricted: /);
    await operate("lists.add", { list: "private-members", entry: carol.npub, reason: "new colleague" });
    const { end } = await outside.ask("q", { kinds: [30617] });
    assert.equal(end[0], "EOSE", "the same connection, at once");
    const { entries } = await operate("lists.show", { list: "private-members" });
    assert.ok(entries.some(({ entry, origin }) => entry === carol.npub && origin === "run time"));
    assert.ok(entries.some(({ entry, origin }) => entry === alice.npub && origin === "configuration"));
    const closed = outside.next(([verb]) => verb === "CLOSED");
    await operate("lists.remove", { list: "private-members", entry: carol.npub });
    assert.deepEqual((await closed).slice(0, 2), ["CLOSED", "q"]);
    await operate("lists.add", { list: "private-members", entry: carol.npub });
    assert.equal((await outside.ask("again", {})).end[0], "EOSE");
    const banned = outside.next(([verb]) => verb === "CLOSED");
    await operate("ban", { type: "key", target: carol.npub });
    assert.match(String((await banned)[2]), /^restricted: /);
    await outside.close();
    assert.ok((await story.served({ kinds: [30617] })).length > 0, `${server.domain} goes on`);
  });

  test("a reload of the settings lets members in and out at once", async () => {
    const { server, alice, bob, connectAs } = service;
    const erin = new Person();
    const client = await connectAs(erin);
    server.reload({ NGIT_PRIVATE_MEMBERS: [alice, bob, erin].map(({ npub }) => npub).join() });
    assert.equal((await client.ask("q", { kinds: [30617] })).end[0], "EOSE");
    const closed = client.next(([verb]) => verb === "CLOSED");
    server.reload({ NGIT_PRIVATE_MEMBERS: [alice, bob].map(({ npub }) => npub).join() });
    assert.match(String((await closed)[2]), /^restricted: /);
    await client.close();
  });

  test("an announcement that asks for a private service is welcome here", async () => {
    const { alice, story } = service;
    await story.announce(alice, "tagged", [["private", "true"]]);
  });

  test("who decides and who may come in are two things: a maintainer outside signs, a member inside pushes", async () => {
    const { alice, bob, story } = service;
    const carol = new Person();
    const roles = [
      ["M", alice.pubkey],
      ["m", carol.pubkey],
    ];
    const shared = story.url(alice, "shared");
    await story.announce(alice, "shared", roles);
    const copy = await story.workingCopy();
    const commit = await copy.commit("signed by one, pushed by another");
    const signed = stateEvent(carol, "shared", { "refs/heads/main": commit });
    assert.equal((await story.publish(signed)).ok, false, "invited, and has not answered");
    // A member brings what somebody outside has signed.
    await story.accepted(story.announcement(carol, "shared", roles));
    await story.accepted(signed);
    const push = (person: Person) =>
      copy.git(...withHeader(signedHeader(person, shared)), "push", "-q", shared, "main");
    assert.notEqual((await push(carol)).code, 0, "a maintainer who is no member does not come in");
    const pushed = await push(bob);
    assert.equal(pushed.code, 0, pushed.stderr);
    assert.equal(await story.isServed(signed), true);
    const outside = await service.connectAs(carol);
    assert.match(String((await outside.ask("q", {})).end[2]), /^restricted: /);
    await outside.close();
  });

  test("the information document says that the service is private", async () => {
    const answer = await ask(service.server.origin, { headers: { accept: "application/nostr+json" } });
    const { supported_grasps, limitation } = JSON.parse(answer.text);
    assert.ok(supported_grasps.includes("GRASP-08"));
    assert.ok(!supported_grasps.includes("GRASP-06"));
    assert.equal(limitation.auth_required, true);
    assert.equal(limitation.restricted_writes, true);
  });
});

test("what ran privately is not shown publicly by a forgotten setting; --open-private-data opens it", {
  timeout: 120_000,
}, async () => {
  const service = await startPrivate();
  const { alice, story, server } = service;
  await story.announce(alice, "plans");
  await story.relay.close();
  await server.stop();
  const { folder, port } = server;
  const publicly = { backend: "lmdb", folder, port } as const;
  await assert.rejects(startInProcess(publicly), /belongs to a private service.*--open-private-data/);
  const again = await startInProcess({
    ...publicly,
    settings: {
      NGIT_PRIVATE_MODE: "true",
      NGIT_PRIVATE_MEMBERS: alice.npub,
      NGIT_PRIVATE_PUBLIC_ORIGIN: "https://team.example",
    },
  });
  const path = `/${alice.npub}/plans.git`;
  const status = async (root: string): Promise<number> => {
    const headers = { authorization: signedHeader(alice, root) };
    return (await ask(`${again.origin}${path}/info/refs?service=git-upload-pack`, { headers })).status;
  };
  assert.equal(await status(`https://team.example${path}`), 200, "members sign for the public origin");
  assert.equal(await status(`${again.origin}${path}`), 401);
  await again.stop();
  const opened = await startInProcess({ ...publicly, openPrivateData: true });
  assert.equal((await ask(`${opened.origin}/${alice.npub}/plans.git/info/refs?service=git-upload-pack`)).status, 200);
  await opened.stop();
  // It is public now, and stays so.
  const later = await startInProcess(publicly);
  await later.end();
});

test("a public service refuses an announcement that asks for a private one", { timeout: 60_000 }, async () => {
  const story = await Story.begin();
  const person = new Person();
  const { ok, message } = await story.publish(story.announcement(person, "plans", [["private", "true"]]));
  assert.equal(ok, false);
  assert.match(message, /^restricted: this announcement asks for a private service/);
  assert.equal((await story.publish(story.announcement(person, "plans", [["private", "false"]]))).ok, true);
  assert.equal((await story.publish(stateEvent(person, "plans", {}))).ok, true);
  const keyed = await ask(`${story.url(person, "plans")}/info/refs?service=git-upload-pack`, {
    headers: { authorization: basic("anybody", "anything") },
  });
  assert.equal(keyed.status, 200, "credentials change nothing on a public service");
  await story.end();
});
