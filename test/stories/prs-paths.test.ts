// What is at /prs/ and what is not: exactly nothing while GRASP-06 is off; when it is on, well-formed paths only, each
// its own repository inside the data directory (threats.md row 3).

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import type { TestServer } from "../harness/server.js";
import { beginPrs, everythingIn, listed, prsUrl, pullRequest, push, refOf } from "./prs-world.js";

/** The path goes out as it is written; fetch() would tidy it up. */
function ask(
  server: TestServer,
  method: string,
  path: string,
  headers = "",
): Promise<{ status: number; head: string }> {
  const [host, port] = server.domain.split(":");
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), host);
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
    socket.once("error", reject).once("close", () => {
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]), head: text.split("\r\n\r\n")[0] ?? "" });
    });
    socket.write(`${method} ${path} HTTP/1.1\r\nHost: ${server.domain}\r\n${headers}Connection: close\r\n\r\n`);
  });
}

const below = [
  "",
  "/",
  "/info/refs?service=git-upload-pack",
  "/info/refs?service=git-receive-pack",
  "/info/refs",
].concat(["/git-upload-pack", "/git-receive-pack", "/HEAD", "/objects/info/packs", "/config"]);
const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"];

describe("/prs/ while GRASP-06 is off", () => {
  let story: Story;
  before(async () => {
    story = await Story.begin();
  });
  after(() => story.end());

  it("every path with every method is 404, OPTIONS 204, with the headers browsers need; nothing is created", async () => {
    const { server } = story;
    const someone = new Person();
    await story.hosted(someone, "hosted");
    const paths = ["/prs", "/prs/", `/prs/${someone.npub}`, "/prs/x/y.git/info/refs?service=git-upload-pack"].concat(
      ["x", "hosted"].flatMap((identifier) => below.map((rest) => `/prs/${someone.npub}/${identifier}.git${rest}`)),
    );
    const listing = everythingIn(server);
    for (const path of paths) {
      const answers = await Promise.all(methods.map((method) => ask(server, method, path)));
      assert.deepEqual(
        answers.map(({ status }, index) => `${methods[index]} ${path} ${status}`),
        methods.map((method) => `${method} ${path} 404`),
      );
      for (const { head } of answers) assert.match(head, /access-control-allow-origin: \*/i);
      assert.equal((await ask(server, "GET", path, "Accept: text/html\r\n")).status, 404);
      assert.equal((await ask(server, "OPTIONS", path)).status, 204);
    }
    const upgrade =
      "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    assert.equal((await ask(server, "GET", `/prs/${someone.npub}/x.git`, upgrade)).status, 404);
    assert.deepEqual(everythingIn(server), listing);
  });

  it("GRASP-06 is not advertised, its pull requests are refused, and a push fails without leaving anything", async () => {
    const answer = await fetch(story.server.origin, { headers: { accept: "application/nostr+json" } });
    assert.doesNotMatch(await answer.text(), /GRASP-06/);
    const [owner, contributor] = [new Person(), new Person()];
    const work = await story.workingCopy();
    const event = pullRequest(story, contributor, owner, "x", await work.commit("off"));
    assert.equal((await story.publish(event)).ok, false);
    const pushed = await push(work, prsUrl(story, contributor, "x"), event);
    assert.notEqual(pushed.code, 0);
    assert.ok(!existsSync(join(story.server.gitPath, "prs")));
  });
});

describe("/prs/ paths while GRASP-06 is on", () => {
  let story: Story;
  before(async () => {
    story = await beginPrs({ settings: { NGIT_UNCLAIMED_PER_HOUR_PER_IP: "1000" } });
  });
  after(() => story.end());

  const status = async (path: string, rest = "/info/refs?service=git-upload-pack"): Promise<number> =>
    (await ask(story.server, "GET", path + rest)).status;

  it("threats 3: malformed paths are 404 as a page and to git, and nothing is created", async () => {
    const { npub } = new Person();
    const wrongChecksum = `${npub.slice(0, -1)}${npub.endsWith("q") ? "p" : "q"}`;
    const malformed = [
      "/prs",
      "/prs/",
      `/prs/${npub}`,
      `/prs/${npub}/`,
      `/prs/${npub}/.git`,
      `/prs/${npub}/x`,
      `/prs/${npub}/x.GIT`,
      `/prs/${npub}/a/x.git`,
      `/prs/${npub}/../x.git`,
      `/prs/${npub}//x.git`,
      `/prs//${npub}/x.git`,
      `/prs/${npub}/%00.git`,
      `/prs/${npub}/a%0Ab.git`,
      `/prs/${npub}/%7F.git`,
      `/prs/${npub}/%FF.git`,
      `/prs/${npub}/%zz.git`,
      `/prs/${npub}/${"x".repeat(5_000)}.git`,
      `/prs/${npub.toUpperCase()}/x.git`,
      `/prs/${new Person().pubkey}/x.git`,
      `/prs/${wrongChecksum}/x.git`,
      `/prs/..%2F${npub}/x.git`,
      `/PRS/${npub}/x.git`,
      `/prs%2F${npub}/x.git`,
    ];
    const listing = everythingIn(story.server);
    for (const path of malformed) {
      assert.equal(await status(path), 404, path);
      assert.equal(await status(path, ""), 404, path);
    }
    assert.equal(await status(`/prs/${npub}/x.git`, "/HEAD"), 404, "dumb HTTP");
    assert.equal((await ask(story.server, "POST", `/prs/${npub}/x.git/info/refs`)).status, 405);
    assert.equal((await ask(story.server, "POST", `/prs/${npub}/x.git`)).status, 405, "its page can only be read");
    assert.equal((await ask(story.server, "OPTIONS", `/prs/${npub}/x.git`)).status, 204);
    assert.deepEqual(everythingIn(story.server), listing);
  });

  it("threats 3: odd identifiers are each one repository of their own, inside the data directory", async () => {
    const [owner, contributor] = [new Person(), new Person()];
    const odd = ["../../escape", "..", ".", "/etc", "x.git", "a b", "Twin", "twin", "caf\u00e9", "cafe\u0301"].concat([
      "\u202eevil",
      "n".repeat(300),
      "-rf",
      ".holdfast-new-1",
      "y.lock",
      "%2e%2e",
    ]);
    const work = await story.workingCopy();
    const wanted = new Map<string, Record<string, string>>();
    for (const identifier of odd) {
      const tip = await work.commit(identifier);
      const event = await story.accepted(pullRequest(story, contributor, owner, identifier, tip));
      const url = prsUrl(story, contributor, identifier);
      const pushed = await push(work, url, event);
      assert.equal(pushed.code, 0, `${identifier}: ${pushed.stderr}`);
      assert.ok(await story.isServed(event), identifier);
      wanted.set(url, { [refOf(event)]: tip });
    }
    for (const [url, refs] of wanted) assert.deepEqual(await listed(url), refs, url);
    const folder = join(story.server.gitPath, "prs");
    assert.deepEqual(readdirSync(folder), [contributor.pubkey]);
    const made = readdirSync(join(folder, contributor.pubkey));
    assert.equal(made.length, odd.length);
    for (const name of made) assert.match(name, /^[A-Za-z0-9=][A-Za-z0-9._-]*\.git$/);
  });
});
