// Two servers and a plain git server: what is pushed to one is served by the other, events and data.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { HuntGitServer } from "../harness/hunt-git-server.js";
import { until } from "../harness/server.js";

/** The promise is 8 s, and 2 s for a further push; other test files share the machine. */
const patienceMs = 120_000;

let first: Story;
let second: Story;
let plain: HuntGitServer;

before(async () => {
  first = await Story.begin();
  second = await Story.begin({
    settings: { NGIT_SYNC_BOOTSTRAP_RELAY_URL: `ws://${first.server.domain}`, NGIT_GIT_HUNT_SYNC_DELAY_MS: "500" },
  });
  plain = await HuntGitServer.start();
});

after(async () => {
  await second.end();
  await first.end();
  await plain.close();
});

/** Of the first server: how often another one asked it for git data. */
async function gitRequests(): Promise<string> {
  const text = await (await fetch(`${first.server.origin}/metrics`)).text();
  return text
    .split("\n")
    .filter((line) => /^ngit_git_operations_total/.test(line))
    .join("; ");
}

test("what is pushed to one server is served by the other: announcement, state, refs and a clone", async (t) => {
  const owner = new Person();
  const identifier = "both";
  const tags = [
    ["d", identifier],
    ["clone", first.url(owner, identifier), second.url(owner, identifier), plain.url(identifier)],
    ["relays", `ws://${first.server.domain}`, `ws://${second.server.domain}`],
  ];
  const announcement = await first.accepted(owner.sign(30617, tags));
  const work = await first.workingCopy();
  const one = await work.commit("one");
  const state = await first.state(owner, identifier, { "refs/heads/main": one });
  await work.must("push", "-q", first.url(owner, identifier), "main");

  const begun = performance.now();
  const followed = await until(
    async () => (await second.isServed(announcement)) && (await second.isServed(state)),
    patienceMs,
  );
  const newMs = Math.round(performance.now() - begun);
  assert.ok(followed, "the second server serves the announcement and the state");
  assert.equal((await second.advertised(owner, identifier))["refs/heads/main"], one);
  const copy = await second.workingCopy();
  await copy.must("fetch", "-q", second.url(owner, identifier), "main");

  const two = await work.commit("two");
  const further = await first.state(owner, identifier, { "refs/heads/main": two });
  await work.must("push", "-q", first.url(owner, identifier), "main");
  const again = performance.now();
  assert.ok(await until(() => second.isServed(further), patienceMs), "the further push arrives too");
  const furtherMs = Math.round(performance.now() - again);
  assert.equal((await second.advertised(owner, identifier)).HEAD, two);
  t.diagnostic(`new repository ${newMs} ms, further push ${furtherMs} ms`);
  t.diagnostic(`plain git server: ${JSON.stringify(plain.counts())}; first server: ${await gitRequests()}`);
});

test("an invitee's answer and state, and CI events of every range, reach the other server; an ephemeral one once", async () => {
  const [owner, bob, ci] = [new Person(), new Person(), new Person()];
  const identifier = "team";
  const relays = ["relays", `ws://${first.server.domain}`, `ws://${second.server.domain}`];
  const announcement = await first.accepted(
    owner.sign(30617, [
      ["d", identifier],
      ["clone", first.url(owner, identifier), second.url(owner, identifier)],
      relays,
      ["M", owner.pubkey],
      ["m", bob.pubkey],
    ]),
  );
  const work = await first.workingCopy();
  await first.state(owner, identifier, { "refs/heads/main": await work.commit("one") });
  await work.must("push", "-q", first.url(owner, identifier), "main");
  assert.ok(await until(() => second.isServed(announcement), patienceMs));

  const answer = await first.accepted(
    bob.sign(30617, [["d", identifier], ["clone", "https://elsewhere.example/x.git"], relays, ["M", owner.pubkey]]),
  );
  const two = await work.commit("two");
  const state = await first.state(bob, identifier, { "refs/heads/main": two });
  await work.must("push", "-q", first.url(owner, identifier), "main");
  assert.ok(await until(() => second.isServed(answer), patienceMs), "the answer");
  assert.ok(await until(() => second.isServed(state), patienceMs), "and the state it makes valid");
  assert.equal((await second.advertised(owner, identifier))["refs/heads/main"], two);

  const about = [
    ["a", owner.coordinate(identifier)],
    ["c", two],
  ];
  const events = [1624, 1985, 9840, 9841, 9842, 9843, 9844, 19843, 19844, 30624, 39842, 39844].map((kind) =>
    ci.sign(kind, [["d", "run"], ...about]),
  );
  for (const event of events) await first.accepted(event);
  for (const event of events) {
    assert.ok(await until(() => second.isServed(event), patienceMs), `kind ${event.kind}`);
  }
  const newer = await first.accepted(ci.sign(39842, [["d", "run"], ...about]));
  assert.ok(await until(() => second.isServed(newer), patienceMs));
  const markers = await second.served({ kinds: [39842], authors: [ci.pubkey] });
  assert.deepEqual(
    markers.map(({ id }) => id),
    [newer.id],
    "the newest of an address",
  );

  // Both servers follow each other: what is not kept must not go to and fro.
  const listeners = await Promise.all([first, second].map(({ server }) => server.connect()));
  for (const listener of listeners) await listener.ask("live", { kinds: [29846] });
  const secrets = [owner.sign(29846, about), owner.sign(29846, about)];
  for (const secret of secrets) {
    const heard = listeners.map((listener) =>
      listener.next(([verb, , event]) => verb === "EVENT" && (event as { id: string }).id === secret.id),
    );
    await first.accepted(secret);
    await Promise.all(heard);
  }
  for (const listener of listeners) {
    assert.deepEqual(
      listener.eventsOf("live").map(({ id }) => id),
      secrets.map(({ id }) => id),
    );
    await listener.close();
  }
});
