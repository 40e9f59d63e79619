// A service below a base path (git-http.md, "Repositories on disk": "optional base path"; GRASP-01 R1): relay, git and
// pages are there, whether the proxy in front passes the base path on or takes it away.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { RelayClient } from "../harness/relay-client.js";

describe("below a base path", () => {
  let story: Story;
  let origin: string;
  const person = new Person();
  const path = `/${person.npub}/far%20down.git`;

  before(async () => {
    story = await Story.begin({ settings: { NGIT_DOMAIN: "git.example.com/base/two", NGIT_GRASP06_ENABLE: "true" } });
    origin = story.server.origin;
    const relay = await RelayClient.connect(`${origin.replace("http", "ws")}/base/two`);
    const work = await story.workingCopy();
    const tip = await work.commit("one");
    for (const event of [
      person.sign(30617, [
        ["d", "far down"],
        ["clone", `https://git.example.com/base/two${path}`],
        ["relays", "wss://git.example.com/base/two"],
      ]),
      person.sign(30618, [
        ["d", "far down"],
        ["refs/heads/main", tip],
        ["HEAD", "ref: refs/heads/main"],
      ]),
    ]) {
      assert.equal((await relay.publish(event))[2], true);
    }
    await relay.close();
    await work.must("push", "-q", `${origin}/base/two${path}`, "main");
  });
  after(() => story.end());

  for (const [how, prefix] of [
    ["passed on", "/base/two"],
    ["taken away by the proxy", ""],
  ] as const) {
    it(`repositories and pages are found with the base path ${how}`, async () => {
      const listed = await runProgram("git", ["ls-remote", `${origin}${prefix}${path}`]);
      assert.match(listed.stdout, /\trefs\/heads\/main\n/, listed.stderr);
      const contributed = await runProgram("git", ["ls-remote", `${origin}${prefix}/prs${path}`]);
      assert.equal(contributed.code, 0, contributed.stderr);
      for (const page of ["/", path, `${path}/`, "/status", "/admin", "/robots.txt", "/healthz"]) {
        const answer = await fetch(`${origin}${prefix}${page}`, { headers: { Accept: "text/html" } });
        assert.equal(answer.status, page === "/admin" ? 401 : 200, page);
        const links = [...(await answer.text()).matchAll(/(?:href|src|action)="(\/[^"]*)"/g)].map(([, link]) => link);
        for (const link of links) assert.match(link ?? "", /^\/base\/two\//, `a link on ${page}`);
      }
    });
  }
});
