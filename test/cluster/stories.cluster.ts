// Stories that only clusters have: two of them and a single server follow each other, clocks run on the machine that leads,
// and a new version is installed on one machine after the other.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { startInProcess, untilSo } from "../harness/server.js";
import { Pusher, servedBy, told } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { ClusterOfProcesses, WholeCluster } from "./whole-cluster.js";

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

const earlier = process.env.HOLDFAST_EARLIER;
const newProgram = fileURLToPath(new URL("../../src/main.js", import.meta.url));

test("a new version is installed on one machine after the other while people push, and one command ends it", {
  ...takesLong,
  skip: earlier === undefined && "no earlier version could be built",
}, async () => {
  const cluster = await ClusterOfProcesses.start({ postgres, ...(earlier === undefined ? {} : { program: earlier }) });
  try {
    const pusher = await Pusher.make(cluster.folder, cluster.domain, "upgraded", 11);
    assert.equal((await pusher.announce(cluster))?.ok, true);
    const push = async (): Promise<void> => {
      const { isDone, said } = await pusher.push(cluster, cluster);
      assert.ok(isDone, said);
      assert.ok(await pusher.say(cluster, `${pusher.tips.length}`));
    };
    await push();
    for (const name of [...cluster.machines.keys()]) {
      await cluster.machine(name).stop();
      await push();
      await cluster.run(name, newProgram);
      await untilSo("it is ready", () => cluster.isReady(name));
      for (let turn = 0; turn < 3; turn++) await push();
    }
    const env = { ...cluster.settingsOf("one"), NGIT_DATABASE_BACKEND: "postgres" };
    const upgraded = await runProgram(process.execPath, [newProgram, "cluster", "upgrade"], {
      cwd: cluster.folder,
      env,
    });
    assert.equal(upgraded.code, 0, upgraded.stderr);
    await push();
    assert.deepEqual(await pusher.problems([...cluster.machines.values()], cluster.folder), []);
  } finally {
    await cluster.end();
  }
});
