// `holdfast sync verify <repository>`: a running server compares one repository with every copy it lists. The copies: a
// second server, a relay without negentropy, a plain git server, and one that may not be dialled.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { NostrEvent } from "../../src/nostr/event.js";
import { npubOf } from "../../src/nostr/nip19.js";
import type { RelayList } from "../../src/operator/relays.js";
import type { GitCopy, RelayCopy, Verified } from "../../src/operator/verified.js";
import type { Ended } from "../cli/run.js";
import { Story } from "../harness/grasp-story.js";
import { HuntGitServer } from "../harness/hunt-git-server.js";
import { newKey, nowSeconds, OperatorServer, signed } from "../harness/operator-server.js";
import type { RelayClient } from "../harness/relay-client.js";
import { until } from "../harness/server.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";

const owner = newKey();
const visitor = newKey();
const identifier = "copied";
const forbidden = "http://10.255.255.1/copied.git";
const name = `${npubOf(owner.pubkey)}/${identifier}`;
const address = `30617:${owner.pubkey}:${identifier}`;

let here: OperatorServer;
let client: RelayClient;
let there: Story;
let relay: PlainRelay;
let plain: HuntGitServer;
let work: string;

before(async () => {
  here = await OperatorServer.start();
  client = await here.connect();
  there = await Story.begin();
  relay = await PlainRelay.start({ negentropy: "notice" });
  plain = await HuntGitServer.start();
});

after(async () => {
  await client?.close();
  await here?.close();
  await there?.end();
  await relay?.stop();
  await plain?.close();
});

const publish = async (event: NostrEvent): Promise<void> => assert.equal((await client.publish(event))[2], true);

async function push(url: string, ...refs: string[]): Promise<void> {
  const pushed = await here.git("-C", work, "push", "-q", url, ...refs);
  assert.equal(pushed.code, 0, pushed.stderr);
}

async function verified(): Promise<{ readonly ended: Ended; readonly answer: Verified & { readonly ok: boolean } }> {
  const ended = await here.verb("sync", "verify", name, "--json");
  return { ended, answer: JSON.parse(ended.stdout) };
}

const relayCopy = ({ relays }: Verified, url: string): RelayCopy | undefined => relays.find((one) => one.relay === url);
const gitCopy = ({ gitServers }: Verified, url: string): GitCopy | undefined =>
  gitServers.find((one) => one.url === url);

test("a repository that is the same everywhere: every copy is named, exit 0, and the page says when", async () => {
  const clone = [there.url(personOf(), identifier), plain.url(identifier)];
  const more = [
    ["clone", ...clone],
    ["relays", `ws://${there.server.domain}`, relay.url],
  ];
  const announcement = here.announcement(owner, identifier, nowSeconds() - 20, more);
  const commit = here.commit();
  work = commit.folder;
  const tags = [
    ["d", identifier],
    ["refs/heads/main", commit.oid],
    ["HEAD", "ref: refs/heads/main"],
  ];
  const state = signed(owner, 30618, tags, "", nowSeconds() - 10);
  for (const event of [announcement, state]) {
    await publish(event);
    await there.accepted(event as never);
    relay.events.push(event);
  }
  await push(here.repositoryUrl(owner, identifier), "main");
  assert.equal((await here.git("init", "-q", "--bare", `${plain.folder}/${identifier}.git`)).code, 0);
  await push(`${plain.folder}/${identifier}.git`, "main");
  assert.ok(await until(() => there.isServed(state as never)));
  // What differs later must be found by the comparison, not brought by a first sync that is still under way: since the
  // push the repository's talk is followed and asked for too.
  const isTalkRead = (): boolean =>
    ["#a", "#A", "#q"].every((tag) => {
      const asked = relay.heard.flatMap(({ verb, rest: [subscription, ...filters] }) => {
        const isIt =
          verb === "REQ" && String(subscription).startsWith("h") && filters.some((one) => tag in Object(one));
        return isIt ? [subscription] : [];
      });
      const closed = relay.heard.filter(({ verb, rest }) => verb === "CLOSE" && asked.includes(rest[0]));
      // Both servers follow the relay.
      return asked.length >= 2 && closed.length >= asked.length;
    });
  const isInStep = async (): Promise<boolean> => {
    const { relays } = await here.operate<RelayList>("relays.list", {});
    return relays.find((one) => one.relay === relay.key)?.inStep === true;
  };
  assert.ok(await until(async () => isTalkRead() && (await isInStep())), "in step with the relay");

  const { ended, answer } = await verified();
  assert.equal(ended.code, 0, ended.stdout + ended.stderr);
  assert.equal(answer.ok, true);
  assert.deepEqual(
    answer.relays.map(({ relay: url, standing, method }) => [url, standing, method]),
    [
      [`ws://${there.server.domain}`, "same", "negentropy"],
      [relay.url, "same", "read"],
    ],
  );
  assert.deepEqual(
    answer.gitServers.map(({ url, standing, refs }) => [url, standing, refs]),
    clone.map((url) => [url, "same", 1]),
  );
  const asked = await fetch(`${here.repositoryUrl(owner, identifier)}/copies`, { headers: { accept: "text/html" } });
  const page = await asked.text();
  const row = page.split("<tr>").find((one) => one.includes(plain.url(identifier).replace("https://", ""))) ?? "";
  assert.match(row, /data-label="Found equal"><span><time /);
});

test("what differs is told by copy and side, exit 1; held and refused events are not missing", async () => {
  const issue = (content: string): NostrEvent => signed(visitor, 1621, [["a", address]], content);
  const [onlyHere, onlyThere] = [issue("only here"), issue("only there")];
  await publish(onlyHere);
  relay.events.push(onlyThere);
  // It names a commit that is nowhere: it waits here, and is served there.
  const held = signed(visitor, 1618, [
    ["a", address],
    ["c", "ab".repeat(20)],
  ]);
  await publish(held);
  relay.events.push(held);
  await push(`${plain.folder}/${identifier}.git`, "main:refs/heads/extra");

  const { ended, answer } = await verified();
  assert.equal(ended.code, 1, ended.stdout + ended.stderr);
  assert.equal(answer.ok, false);
  const { standing, missingHere, missingThere, waitingHere } = relayCopy(answer, relay.url) as RelayCopy;
  assert.deepEqual([standing, missingHere, missingThere, waitingHere], ["differs", 1, 1, 1]);
  const git = gitCopy(answer, plain.url(identifier)) as GitCopy;
  assert.deepEqual([git.standing, git.differing], ["differs", 1]);
  assert.deepEqual(
    git.differences.map(({ ref, here: ours }) => [ref, ours]),
    [["refs/heads/extra", null]],
  );
  const table = await here.verb("sync", "verify", name);
  assert.equal(table.code, 1);
  assert.match(table.stdout, /^COPY +WHAT +RESULT +MISSING HERE +MISSING THERE/);
  assert.match(table.stdout, new RegExp(`${relay.url} +events +differs +1 +1 +1 waits here for git data`));
  assert.match(table.stdout, /refs +differs +1 +0 +1 differs: extra/);
  assert.equal(await client.ask("held", { ids: [held.id] }).then(({ events }) => events.length), 0);
});

test("a copy that is gone or may not be dialled is not compared, which is a difference; nothing else suffers", async () => {
  const more = [
    ["clone", forbidden, plain.url(identifier)],
    ["relays", "ws://10.255.255.1", relay.url],
  ];
  await publish(here.announcement(owner, identifier, nowSeconds(), more));
  await relay.stop();
  plain.behaviour = { type: "status", status: 500 };
  const { ended, answer } = await verified();
  assert.equal(ended.code, 1, ended.stdout + ended.stderr);
  for (const copy of [...answer.relays, ...answer.gitServers]) {
    assert.equal(copy.standing, "not compared", JSON.stringify(copy));
    assert.notEqual(copy.reason, null);
  }
  assert.equal(gitCopy(answer, forbidden)?.reason, "address-not-allowed");
  // Threat 31: why a remote server could not be compared is for the operator only.
  const root = here.repositoryUrl(owner, identifier);
  for (const url of [root, `${root}/copies`, `${here.httpUrl}/status`]) {
    const page = await (await fetch(url, { headers: { accept: "text/html" } })).text();
    assert.match(page, /<h1/);
    for (const { reason } of [...answer.relays, ...answer.gitServers]) assert.ok(!page.includes(reason ?? ""), url);
  }
});

test("an unknown or waiting repository, and a name that is none, are told apart from a difference", async () => {
  const waiting = here.announcement(owner, "waits", nowSeconds());
  await publish(waiting);
  const unserved = await here.verb("sync", "verify", `${npubOf(owner.pubkey)}/waits`, "--json");
  assert.equal(unserved.code, 1);
  assert.equal(JSON.parse(unserved.stdout).code, "unknown");
  assert.equal((await here.verb("sync", "verify", "nothing")).code, 2);
  assert.match((await here.verb("sync", "verify", "--help")).stdout, /sync verify npub1…\/my-project/);
});

function personOf(): never {
  return { npub: npubOf(owner.pubkey) } as never;
}
