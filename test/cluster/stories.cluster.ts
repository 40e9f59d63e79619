// Stories that only clusters have: two of them and a single server follow each other, clocks run on the machine that leads,
// and what one machine found holds on all of them.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import type { ListedEntry } from "../../src/operator/lists.js";
import { askServer } from "../../src/operator/socket.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { authenticate, signedHeader } from "../harness/private-service.js";
import { ask } from "../harness/raw-http.js";
import { startInProcess, untilSo } from "../harness/server.js";
import { Pusher, servedBy, told } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { leads, serverKey, WholeCluster } from "./whole-cluster.js";

let postgres: TestPostgres;
before(async () => {
  postgres = await TestPostgres.start();
});
after(() => postgres.dispose());

const takesLong = { timeout: 300_000 };
const quick = { NGIT_GIT_HUNT_SYNC_DELAY_MS: "500", NGIT_GIT_HUNT_DIRECT_DELAY_MS: "500" };

test(
  "two clusters and a single server that an announcement lists follow each other, events and git data",
  takesLong,
  async () => {
    const wish = { postgres, size: 2, settings: quick };
    const [first, second] = [await WholeCluster.start(wish), await WholeCluster.start(wish)];
    const single = await startInProcess({ settings: quick });
    const places = [first, second, single];
    try {
      const pusher = await Pusher.make(first.folder, first.domain, "everywhere", 3);
      const { person, source, identifier } = pusher;
      const announcement = person.sign(30617, [
        ["d", identifier],
        ["clone", ...places.map((place) => pusher.url(place))],
        ["relays", ...places.map(({ url }) => url)],
      ]);
      for (const place of places) assert.equal((await told(place, announcement))?.ok, true);
      for (const [index, to] of places.entries()) {
        const tip = await source.next();
        const state = person.sign(30618, [
          ["d", identifier],
          ["refs/heads/main", tip],
          ["HEAD", "ref: refs/heads/main"],
        ]);
        assert.equal((await told(to, state))?.ok, true);
        const pushed = await source.push(pusher.url(to), { "refs/heads/main": tip });
        assert.ok(
          pushed.refs.some(({ ok }) => ok),
          pushed.stderr,
        );
        const issue = person.sign(1621, [["a", person.coordinate(identifier)]], `told to ${index}`);
        assert.equal((await told(to, issue))?.ok, true);
        for (const place of places) {
          await untilSo(`${index}: the push arrives`, async () => (await pusher.shown(place)) === tip);
          await untilSo(
            `${index}: the events arrive`,
            async () => (await servedBy(place, [state.id, issue.id])).size === 2,
          );
        }
        pusher.tips.push(tip);
        pusher.acknowledged.add(tip);
      }
      const machines = [...first.machines, ...second.machines, single];
      assert.deepEqual(await pusher.problems(machines, first.folder), []);
    } finally {
      await single.end();
      await second.end();
      await first.end();
    }
  },
);

test(
  "a state of which a push to any machine brought a part is served by the clock of the one that leads",
  takesLong,
  async () => {
    const settings = { NGIT_PARTIAL_STATE_GRACE_SECS: "2" };
    const cluster = await WholeCluster.start({ postgres, settings });
    const story = await Story.on(cluster);
    try {
      for (const machine of cluster.machines) {
        const alice = new Person();
        await story.announce(alice, "part");
        const work = await story.workingCopy();
        const tip = await work.commit("one");
        const state = stateEvent(alice, "part", { "refs/heads/main": tip, "refs/heads/other": "ab".repeat(20) });
        await story.accepted(state);
        await work.must("push", "-q", `${machine.origin}/${alice.npub}/part.git`, "main");
        await untilSo("it is served in part", () => story.isServed(state));
        assert.deepEqual(await story.advertised(alice, "part"), { HEAD: tip, "refs/heads/main": tip });
      }
    } finally {
      await story.relay.close();
      await cluster.end();
    }
  },
);

test(
  "the key that runs another relay of an announcement is let in by every machine of a private service, whoever of them found it",
  takesLong,
  async () => {
    const alice = new Person();
    const eager = { ...quick, NGIT_SYNC_BATCH_WINDOW_MS: "50", NGIT_SYNC_BASE_BACKOFF_SECS: "1" };
    const isPrivate = { ...eager, NGIT_PRIVATE_MODE: "true", NGIT_METRICS_PUBLIC: "false" };
    const cluster = await WholeCluster.start({
      ...{ postgres, size: 2 },
      settings: { ...isPrivate, NGIT_PRIVATE_MEMBERS: alice.npub, NGIT_PRIVATE_PEERS: "true" },
    });
    const key = SecretKey.generate(randomBytes);
    const ours = SecretKey.fromHex(serverKey);
    assert.ok(ours);
    const there = await startInProcess({
      settings: {
        ...isPrivate,
        NGIT_RELAY_OWNER_NSEC: Buffer.from(key.exportBytes()).toString("hex"),
        NGIT_PRIVATE_MEMBERS: `${alice.npub},${npubOf(ours.pubkey)}`,
        NGIT_SYNC_BOOTSTRAP_RELAY_URL: cluster.url,
      },
    });
    const story = await Story.on(cluster);
    try {
      await authenticate(story.relay, cluster, alice);
      const copy = `${there.origin}/${alice.npub}/plans.git`;
      await story.announce(alice, "plans", [
        ["clone", copy],
        ["relays", there.url],
      ]);
      const work = await story.workingCopy();
      const tip = await work.commit("one");
      await story.state(alice, "plans", { "refs/heads/main": tip });
      const url = story.url(alice, "plans");
      await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, url)}`, "push", "-q", url, "main");
      const peersOf = async (name: string): Promise<string[]> => {
        const question = { operation: "lists.show", parameters: { list: "private-members" } };
        const outcome = await askServer(join(cluster.folderOf(name), "relay"), question, () => undefined);
        assert.ok(outcome?.ok);
        const { entries } = outcome.result as { entries: ListedEntry[] };
        return entries.filter(({ origin }) => origin === "peer relay").map(({ entry }) => entry);
      };
      for (const name of ["one", "two"]) {
        await untilSo(`${name} knows the peer`, async () => (await peersOf(name)).includes(npubOf(key.pubkey)));
      }
      // From now on it meets only the machine that did not find it.
      const [first, second] = cluster.machines;
      assert.ok(first && second);
      const follower = (await leads(first)) ? second : first;
      assert.equal(await leads(follower), false);
      cluster.balancer.machines = [follower.port];
      const next = await work.commit("two");
      const member = await cluster.connect();
      await authenticate(member, cluster, alice);
      const state = stateEvent(alice, "plans", { "refs/heads/main": next });
      assert.equal((await member.publish(state))[2], true);
      await work.must("-c", `http.extraHeader=Authorization: ${signedHeader(alice, url)}`, "push", "-q", url, "main");
      await untilSo("the other server has it from there", async () => {
        const headers = { authorization: signedHeader(alice, copy) };
        const answer = await ask(`${copy}/info/refs?service=git-upload-pack`, { headers });
        return answer.status === 200 && answer.text.includes(`${next} refs/heads/main`);
      });
      await member.close();
    } finally {
      await story.relay.close();
      await there.end();
      await cluster.end();
    }
  },
);
