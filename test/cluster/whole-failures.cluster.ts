// What must happen when parts of a cluster fail (scale-out.md, the table), with whole servers in processes of their own, a real
// PostgreSQL and a pack store. What needs the log alone is in failures.cluster.ts, what needs the pack store alone in
// pack-outages.cluster.ts.

import assert from "node:assert/strict";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.js";
import { SecretKey } from "../../src/nostr/keys.js";
import { DirectoryPackStore } from "../../src/packs/directory.js";
import { openClusterStore } from "../../src/store/postgres/open.js";
import { runProgram } from "../harness/git-server.js";
import { Person } from "../harness/grasp-people.js";
import { type ChildServer, startInProcess, untilSo } from "../harness/server.js";
import { type Armed, type DiskWish, pushSteps } from "./armed.js";
import { Pusher, servedBy, told } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { ClusterOfProcesses, serverKey } from "./whole-cluster.js";
import { Wire } from "./wire.js";

const armedProgram = fileURLToPath(new URL("./armed-program.js", import.meta.url));
const wrongClockProgram = fileURLToPath(new URL("./wrong-clock-program.js", import.meta.url));
/** A whole push within this: git's own processes are slow on a test's machine that is busy. Its commits wait ten seconds at most. */
const goOnMs = 20_000;

/** How many commits of a machine waited for their turn, and how many of them longer than ten seconds by its own clock. */
async function waitsOf({ origin }: ChildServer): Promise<{ readonly all: number; readonly long: number }> {
  const text = await (await fetch(`${origin}/metrics`)).text();
  const numberAt = (name: string): number => {
    const line = text.split("\n").find((one) => one.startsWith(`${name} `));
    return Number((line ?? assert.fail(`no ${name}`)).split(" ")[1]);
  };
  const name = "ngit_cluster_lock_wait_seconds";
  const all = numberAt(`${name}_count`);
  return { all, long: all - numberAt(`${name}_bucket{le="10"}`) };
}

const takesLong = { timeout: 900_000 };

/** Listened for before it is asked for: what a machine says at once must not be missed. */
function saying({ child }: ChildServer, what: "heard" | "reached"): Promise<void> {
  return new Promise((resolve) => {
    const listen = (message: object): void => {
      if (!(what in message)) return;
      child.off("message", listen);
      resolve();
    };
    child.on("message", listen);
  });
}

/** It knows when this resolves where it is to end or to stand still; `reached`: it is there. */
async function arm(machine: ChildServer, at: Armed | DiskWish): Promise<{ readonly reached: Promise<void> }> {
  const [heard, reached] = [saying(machine, "heard"), saying(machine, "reached")];
  machine.child.send(at);
  await heard;
  return { reached };
}

describe("a cluster of processes", takesLong, () => {
  let postgres: TestPostgres;
  let cluster: ClusterOfProcesses;
  let count = 0;

  before(async () => {
    postgres = await TestPostgres.start();
    cluster = await ClusterOfProcesses.start({ postgres });
  });
  after(async () => {
    await cluster.end();
    await postgres.dispose();
  });

  const machines = () => [...cluster.machines.values()];

  async function hosted(...more: (readonly string[])[]): Promise<Pusher> {
    const pusher = await Pusher.make(cluster.folder, cluster.domain, `r${count++}`, count);
    assert.equal((await pusher.announce(cluster, ...more))?.ok, true);
    const first = await pusher.push(cluster, cluster);
    assert.ok(first.isDone, first.said);
    return pusher;
  }

  async function isSound(...pushers: Pusher[]): Promise<void> {
    for (const pusher of pushers) assert.deepEqual(await pusher.problems(machines(), cluster.folder), []);
  }

  const allReady = (): Promise<void> => cluster.allReady();

  test("what one machine took the others serve: events, refs and packs", async () => {
    const [one, two, three] = machines();
    assert.ok(one && two && three);
    const pusher = await Pusher.make(cluster.folder, cluster.domain, "first", 1);
    assert.match((await pusher.announce(one))?.message ?? "", /^purgatory/);
    const done = await pusher.push(two, three);
    assert.ok(done.isDone, done.said);
    assert.ok(await pusher.say(one, "an issue"));
    await isSound(pusher);
  });

  for (const step of pushSteps) {
    test(`a machine that is killed when ${step} loses nothing that was acknowledged; the others go on, and it comes back`, async () => {
      const pusher = await hosted();
      const name = "two";
      await cluster.machine(name).stop();
      const armed = await cluster.run(name, armedProgram);
      await arm(armed, { step, signal: "SIGKILL" });
      const [other] = machines().filter((one) => one !== armed);
      assert.ok(other);
      const [pushed] = await Promise.all([pusher.push(other, armed), armed.ended]);
      const before = await waitsOf(other);
      const begun = performance.now();
      const again = await pusher.push(other, other);
      assert.ok(again.isDone, `${pushed.said}\n${again.said}`);
      assert.ok(performance.now() - begun < goOnMs, "the others go on");
      const waits = await waitsOf(other);
      assert.ok(waits.all > before.all);
      assert.equal(waits.long, before.long, "no commit waited for longer than ten seconds");
      await cluster.run(name);
      await allReady();
      await isSound(pusher);
    });
  }

  for (const step of ["the lock is held", "a pack was put into the store"] as const) {
    test(`a machine that stands still when ${step} does not stop the others, and moves no ref twice when it wakes`, async () => {
      const pusher = await hosted();
      const name = "two";
      await cluster.machine(name).stop();
      const armed = await cluster.run(name, armedProgram);
      const { reached } = await arm(armed, { step, signal: "SIGSTOP" });
      const [other] = machines().filter((one) => one !== armed);
      assert.ok(other);
      const paused = pusher.push(other, armed);
      await reached;
      cluster.balancer.machines = cluster.balancer.machines.filter((port) => port !== armed.port);
      const before = await waitsOf(other);
      const begun = performance.now();
      const meanwhile = await pusher.push(other, other);
      assert.ok(meanwhile.isDone, meanwhile.said);
      assert.ok(performance.now() - begun < goOnMs, "the others go on");
      const waits = await waitsOf(other);
      assert.ok(waits.all > before.all);
      assert.equal(waits.long, before.long, "no commit waited for longer than ten seconds");
      armed.child.kill("SIGCONT");
      cluster.balancer.machines.push(armed.port);
      await paused;
      await armed.stop();
      await cluster.run(name);
      await allReady();
      await isSound(pusher);
    });
  }

  test("a leader that stands still for longer than its session is followed by another, and its works are refused when it wakes", async () => {
    await untilSo("one leads", async () => (await cluster.leader()) !== undefined);
    const leader = (await cluster.leader()) ?? "";
    const machine = cluster.machine(leader);
    machine.child.kill("SIGSTOP");
    await untilSo(
      "another leads",
      async () => {
        const now = await cluster.leader();
        return now !== undefined && now !== leader;
      },
      40_000,
    );
    machine.child.kill("SIGCONT");
    await untilSo("it has learned it", async () => /does not lead any more/.test(machine.log()));
    await allReady();
    assert.doesNotMatch(machine.log(), /"level":"?(fatal|60)/);
  });

  test("while PostgreSQL is gone for thirty seconds clones and reads go on, events and pushes are told why not, and afterwards nobody has to do anything", async () => {
    const pusher = await hosted();
    const tip = pusher.tips.at(-1);
    await isSound(pusher);
    await postgres.stop();
    const gone = performance.now();
    try {
      for (const machine of machines()) {
        assert.equal(await pusher.shown(machine), tip);
        const refused = await told(
          machine,
          new Person().sign(1621, [["a", pusher.person.coordinate(pusher.identifier)]], "x"),
        );
        assert.equal(refused?.ok, false);
        assert.match(refused.message, /^error: .*database/);
        const pushed = await pusher.source.push(pusher.url(machine), { "refs/heads/main": await pusher.source.next() });
        assert.equal(
          pushed.refs.some(({ ok }) => ok),
          false,
        );
      }
      const folder = join(cluster.folder, "clone-while-gone");
      const clone = await runProgram("git", ["clone", "-q", pusher.url(cluster), folder], { cwd: cluster.folder });
      assert.equal(clone.code, 0, clone.stderr);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, 30_000 - (performance.now() - gone))));
    } finally {
      await postgres.run();
    }
    await allReady();
    await untilSo("a push is taken again", async () => (await pusher.push(cluster, cluster)).isDone);
    await isSound(pusher);
  });

  test("a view that is deleted is built anew", async () => {
    const pusher = await hosted();
    await pusher.say(cluster, "before");
    const machine = cluster.machine("three");
    await machine.stop();
    const relay = join(cluster.folderOf("three"), "relay");
    for (const file of await readdir(relay)) if (file.includes(".mdb")) await rm(join(relay, file));
    await rm(join(cluster.folderOf("three"), "git"), { recursive: true, force: true });
    await cluster.run("three");
    await allReady();
    await isSound(pusher);
  });

  test("a machine whose disk is full when changes come is not ready, the others go on, and it follows when there is room", async () => {
    const pusher = await hosted();
    const name = "two";
    await cluster.machine(name).stop();
    const armed = await cluster.run(name, armedProgram);
    await allReady();
    const before = await pusher.shown(armed);
    await arm(armed, { disk: "full" });
    const [other] = machines().filter((one) => one !== armed);
    assert.ok(other);
    const pushed = await pusher.push(other, other);
    assert.ok(pushed.isDone, pushed.said);
    await untilSo("it is not ready", async () => !(await cluster.isReady(name)));
    const others = [...cluster.machines.keys()].filter((one) => one !== name);
    for (const one of others) assert.ok(await cluster.isReady(one), one);
    const about = [["a", pusher.person.coordinate(pusher.identifier)]];
    const refused = await told(armed, new Person().sign(1621, about, "no room"));
    assert.equal(refused?.ok, false);
    assert.match(refused.message, /^error: /);
    assert.ok([before, undefined].includes(await pusher.shown(armed)), "never an empty repository");
    assert.ok((await pusher.push(other, other)).isDone, "the others go on");
    await arm(armed, { disk: "has room" });
    await allReady();
    await isSound(pusher);
    assert.equal(armed.child.exitCode, null);
  });

  test("a machine that was away while the log was trimmed comes back with another one's snapshot", async () => {
    const pusher = await hosted();
    await isSound(pusher);
    await cluster.machine("three").stop();
    assert.ok((await pusher.push(cluster.machine("one"), cluster.machine("two"))).isDone);
    await pusher.say(cluster.machine("one"), "while it was away");
    const { schema } = cluster;
    // As if it were away for days: nothing is kept for it any more.
    await postgres.sql(`UPDATE ${schema}.node SET seen = seen - interval '2 days' WHERE name = 'three'`);
    const oldest = async (): Promise<number> =>
      Number((await postgres.sql(`SELECT min(n)::int AS n FROM ${schema}.change`))[0]?.n);
    const applied = Number(
      (await postgres.sql(`SELECT applied::int AS n FROM ${schema}.node WHERE name = 'three'`))[0]?.n,
    );
    const trimmer = await openClusterStore({
      ...{ url: postgres.url(), schema, folder: join(cluster.folder, "trimmer"), name: "trimmer", version: "0.0.0" },
      clock: systemClock,
      serverKey: SecretKey.fromHex(serverKey)?.pubkey ?? "",
      packs: new DirectoryPackStore(cluster.packFolder),
      mayLead: false,
      fault: (error) => assert.fail(error),
    });
    try {
      await untilSo("what it lacks is forgotten", async () => {
        await trimmer.trim({ snapshotEveryMs: 0 });
        return (await oldest()) > applied;
      });
    } finally {
      await trimmer.close();
    }
    const back = await cluster.run("three");
    assert.match(back.log(), /does not fit the shared log/);
    assert.match(back.log(), /begins with the snapshot at change/);
    await allReady();
    await isSound(pusher);
    assert.ok((await pusher.push(back, back)).isDone);
    await isSound(pusher);
  });

  test("machines whose clocks are wrong by an hour judge by the database's time, and say so", async () => {
    const wrong = { two: -3_600_000, three: 3_600_000 };
    const pusher = await hosted();
    for (const [name, byMs] of Object.entries(wrong)) {
      await cluster.machine(name).stop();
      await cluster.run(name, wrongClockProgram, { CLOCK_WRONG_BY_MS: String(byMs) });
      assert.match(cluster.machine(name).log(), /clock is wrong by -?3600 seconds/);
    }
    // One of them leads: what waits and what ends is in its hands.
    await cluster.machine("one").stop();
    cluster.balancer.machines = ["two", "three"].map((name) => cluster.machine(name).port);
    await untilSo("another leads", async () => (await cluster.leader()) !== undefined);
    const now = Math.floor(Date.now() / 1_000);
    const about = ["a", pusher.person.coordinate(pusher.identifier)];
    const kept: string[] = [];
    for (const name of Object.keys(wrong)) {
      const soon = pusher.person.sign(1621, [about, ["expiration", `${now + 600}`]], `soon over, to ${name}`, now);
      const answer = await told(cluster.machine(name), soon);
      assert.equal(answer?.ok, true, `${name}: ${answer?.message}`);
      kept.push(soon.id);
    }
    const waiting = await Pusher.make(cluster.folder, cluster.domain, `waits${count++}`, count);
    assert.match((await waiting.announce(cluster))?.message ?? "", /^purgatory/);
    const over = pusher.person.sign(1621, [about, ["expiration", `${now + 5}`]], "over at once", now);
    await told(cluster, over);
    for (const name of Object.keys(wrong)) {
      const machine = cluster.machine(name);
      await untilSo("what is over is gone", async () => (await servedBy(machine, [over.id])).size === 0);
      assert.deepEqual(await servedBy(machine, kept), new Set(kept));
    }
    assert.ok((await waiting.push(cluster, cluster)).isDone, "what waits had not expired");
    for (const name of Object.keys(wrong)) {
      await cluster.machine(name).stop();
      await cluster.run(name);
    }
    await cluster.run("one");
    await allReady();
    await isSound(pusher, waiting);
  });

  test("machines that are not set alike in what they accept name the settings in a warning, to both operators", async () => {
    await cluster.machine("three").stop();
    const odd = await cluster.run("three", undefined, { NGIT_PARTIAL_STATE_GRACE_SECS: "77" });
    const sentence = (other: string) =>
      new RegExp(`NGIT_PARTIAL_STATE_GRACE_SECS: not set alike on this machine and on ${other}`);
    await untilSo(
      "the one that came says so",
      () => sentence("one").test(odd.log()) && sentence("two").test(odd.log()),
    );
    for (const name of ["one", "two"]) {
      await untilSo("the others say so", () => sentence("three").test(cluster.machine(name).log()));
    }
    await odd.stop();
    await cluster.run("three");
    await allReady();
  });

  test("packs that are lost everywhere are hunted from another server of the announcement", async () => {
    const peer = await startInProcess();
    try {
      const pusher = await Pusher.make(cluster.folder, cluster.domain, `hunted${count++}`, 77);
      const { person, identifier, source } = pusher;
      const announcement = person.sign(30617, [
        ["d", identifier],
        ["clone", pusher.url(cluster), pusher.url(peer)],
        ["relays", cluster.url, peer.url],
      ]);
      const tip = await source.next();
      const state = person.sign(30618, [
        ["d", identifier],
        ["refs/heads/main", tip],
        ["HEAD", "ref: refs/heads/main"],
      ]);
      for (const place of [cluster, peer]) {
        assert.equal((await told(place, announcement))?.ok, true);
        assert.equal((await told(place, state))?.ok, true);
        const { refs, stderr } = await source.push(pusher.url(place), { "refs/heads/main": tip });
        assert.ok(
          refs.some(({ ok }) => ok),
          stderr,
        );
      }
      pusher.tips.push(tip);
      pusher.acknowledged.add(tip);
      await isSound(pusher);
      // Every copy of its packs goes: in the store, and on each machine, which starts without its disk.
      for (const name of [...cluster.machines.keys()]) {
        await cluster.machine(name).stop();
        await rm(join(cluster.folderOf(name), "git"), { recursive: true, force: true });
      }
      const files = (await readdir(cluster.packFolder, { recursive: true })).filter(
        (path) => path.includes(person.pubkey) && path.endsWith(".pack"),
      );
      assert.ok(files.length > 0, "its packs are in the store");
      for (const [index, file] of files.entries()) {
        const path = join(cluster.packFolder, file);
        if (index % 2 === 0) await rm(path);
        else await writeFile(path, "damaged");
      }
      for (const name of [...cluster.machines.keys()]) await cluster.run(name);
      await allReady();
      const answer = await fetch(`${pusher.url(cluster)}/info/refs?service=git-upload-pack`);
      assert.ok(answer.status === 503 || (await answer.text()).includes(tip), "never an empty repository");
      await untilSo(
        "it is whole again",
        async () => (await pusher.cloneProblems(cluster, cluster.folder)).length === 0,
      );
      await isSound(pusher);
    } finally {
      await peer.end();
    }
  });
});

describe("a failover to a replica that lacks the newest changes", takesLong, () => {
  test("every machine stops serving, builds its view anew by itself and goes on with what the replica has", async () => {
    const postgres = await TestPostgres.start(["wal_level=replica", "max_wal_senders=5", "hot_standby=on"]);
    const wire = await Wire.before(postgres.port);
    const replica = await postgres.replica();
    const cluster = await ClusterOfProcesses.start({ postgres: wire, size: 2 });
    try {
      const [one, two] = [...cluster.machines.values()];
      assert.ok(one && two);
      const pusher = await Pusher.make(cluster.folder, cluster.domain, "moved", 5);
      assert.equal((await pusher.announce(one))?.ok, true);
      assert.ok((await pusher.push(one, two)).isDone);
      const kept = new Person().sign(1621, [["a", pusher.person.coordinate("moved")]], "on both");
      assert.equal((await told(one, kept))?.ok, true);
      const newest = async (server: TestPostgres) =>
        Number((await server.sql(`SELECT max(n)::int AS n FROM ${cluster.schema}.change`))[0]?.n);
      await untilSo("the replica has it", async () => (await newest(replica)) === (await newest(postgres)));
      await replica.stop("SIGINT");
      const lost = new Person().sign(1621, [["a", pusher.person.coordinate("moved")]], "on the old primary alone");
      assert.equal((await told(two, lost))?.ok, true);
      // One that never heard of it has nothing to build anew: the replica's history is its own.
      await untilSo("both have it", async () => (await servedBy(one, [lost.id])).size === 1);
      await postgres.stop();
      wire.cut();
      await replica.run();
      await replica.sql("SELECT pg_promote()");
      // Another history: what is written now has the numbers of what was lost.
      wire.leadTo(replica.port);
      await untilSo("both begin anew", () => [one, two].every((machine) => /begins anew/.test(machine.log())), 60_000);
      await untilSo(
        "both are ready",
        async () => (await cluster.isReady("one")) && (await cluster.isReady("two")),
        60_000,
      );
      for (const machine of [one, two]) {
        assert.deepEqual([...(await servedBy(machine, [kept.id, lost.id]))], [kept.id]);
        assert.equal(machine.child.exitCode, null, "nobody had to start it");
      }
      assert.ok((await pusher.push(one, two)).isDone);
      assert.deepEqual(await pusher.problems([one, two], cluster.folder), []);
    } finally {
      await cluster.end();
      await wire.close();
      await replica.dispose();
      await postgres.dispose();
    }
  });
});
