// The waiting room over time, as only a cluster has it: the machine whose clock ends a wait stops, is killed, or is not the one
// that has the data. What a single server has too is told of a cluster by stories/grasp-waiting.test.ts.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { after, afterEach, before, beforeEach, describe, test } from "node:test";
import { ClusterTime } from "../harness/driven-time.js";
import { Person } from "../harness/grasp-people.js";
import { Story } from "../harness/grasp-story.js";
import { batch, type LargeFile, largeFileOf, put } from "../harness/lfs-client.js";
import { type TestServer, untilSo } from "../harness/server.js";
import { Pusher, told } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { ClusterOfProcesses, WholeCluster } from "./whole-cluster.js";

const minute = 60_000;
const hour = 60 * minute;
const anId = (): string => randomBytes(32).toString("hex");

let postgres: TestPostgres;
before(async () => {
  postgres = await TestPostgres.start();
});
after(() => postgres.dispose());

describe("on machines whose time is driven", () => {
  let time: ClusterTime;
  let cluster: WholeCluster;
  let story: Story;

  const begin = async (settings: Readonly<Record<string, string>> = {}): Promise<void> => {
    cluster = await WholeCluster.start({
      ...{ postgres, ...time.parts },
      settings: { NGIT_PING_INTERVAL_SECS: "9d", ...settings },
    });
    story = await Story.on(cluster);
  };
  beforeEach(() => {
    time = new ClusterTime();
  });
  afterEach(async () => {
    await story.relay.close();
    await cluster.end();
  });

  const person = (): Person => new Person(Math.floor(time.nowMs() / 1000), 600);
  const passing = (what: string, isSo: () => Promise<boolean> | boolean, stepMs = 200): Promise<void> =>
    untilSo(what, async () => {
      time.advance(stepMs);
      return isSo();
    });
  const leaderOf = async (): Promise<TestServer> => {
    let leader: TestServer | undefined;
    await untilSo("a machine leads", async () => {
      leader = await cluster.leader();
      return leader !== undefined;
    });
    return leader as TestServer;
  };
  /** A connection may go to a machine that stops: each event has its own. */
  const announce = async (alice: Person, identifier: string): Promise<void> => {
    assert.equal((await told(cluster, story.announcement(alice, identifier)))?.ok, true);
  };

  test("a wait in whose middle the leader stops is ended at its time by the one that leads then", async () => {
    await begin();
    const alice = person();
    await announce(alice, "led");
    time.advance(20 * minute);
    await cluster.remove(await leaderOf());
    await leaderOf();
    time.advance(9 * minute);
    assert.equal(await story.status(alice, "led"), 200, "29 minutes after the announcement");
    time.advance(2 * minute);
    await passing("the next leader ends it", async () => (await story.status(alice, "led")) === 404);
    assert.equal(cluster.machines.length, 2);
  });

  test("a wait that has passed while all machines were down ends when ten minutes of their next life are over", async () => {
    await begin({ NGIT_PURGATORY_START_GRACE_SECS: "10m" });
    const alice = person();
    await announce(alice, "patient");
    const names = cluster.machines.map(({ folder }) => basename(folder));
    for (const machine of [...cluster.machines]) await cluster.remove(machine);
    time.advance(40 * minute);
    for (const name of names) await cluster.add(name);
    await leaderOf();
    for (let passed = 1; passed < 10; passed++) {
      time.advance(minute);
      assert.equal(await story.status(alice, "patient"), 200, `${passed} minutes after the start`);
    }
    time.advance(2 * minute);
    await passing("its time is over", async () => (await story.status(alice, "patient")) === 404);
    const folders = story.directories(alice, "patient");
    await passing("no machine has its files", () => !folders.some((folder) => existsSync(folder)));
  });

  /** What of pushes and uploads that nothing names is on that machine's disk. */
  const asideIn = (directory: string): string[] =>
    ["unclaimed", "lfs/unclaimed"]
      .map((folder) => join(directory, folder))
      .flatMap((folder) => (existsSync(folder) ? readdirSync(folder) : []));

  /** The addresses that a machine gives are the cluster's: the file goes to the same machine. */
  const bring = async (url: string, file: LargeFile | undefined): Promise<number> => {
    assert.ok(file);
    const [object] = (await batch(url, "upload", [file])).objects;
    const href = new URL(object?.actions?.upload.href ?? "");
    href.host = new URL(url).host;
    return (await put(href.href, file.content)).status;
  };

  test("unclaimed data that ended is gone from every machine at once, and from the pack store a day later", async () => {
    await begin();
    const alice = person();
    const { work, tip: main, url } = await story.hosted(alice, "parked");
    const packFolder = join(cluster.packFolder, "main", alice.pubkey, "parked");
    const listed = new Set(readdirSync(packFolder));
    const tip = await work.commit("parked");
    const urls = story.urls(alice, "parked");
    // Each machine takes a push and a file: one of them leads, and ends all of it.
    const files = urls.map((one) => largeFileOf(`brought to ${one}`));
    for (const [index, one] of urls.entries()) {
      await work.must("push", "-q", one, `${tip}:refs/nostr/${anId()}`);
      assert.equal(await bring(one, files[index]), 200);
    }
    const aside = (): string[] => story.directories(alice, "parked").flatMap(asideIn);
    const orphans = (): string[] => [
      ...readdirSync(packFolder).filter((name) => !listed.has(name)),
      ...files
        .map(({ oid }) => oid)
        .filter((oid) => existsSync(join(cluster.packFolder, "large", oid.slice(0, 2), oid))),
    ];
    assert.equal(aside().length, 2 * urls.length);
    const before = orphans();
    time.advance(31 * minute);
    await passing("no machine has any of it", () => aside().length === 0);
    const copy = await story.workingCopy();
    for (const one of urls) assert.match((await copy.git("fetch", one, tip)).stderr, /not our ref/);
    assert.deepEqual(orphans(), before, "whoever reads the pack store has a day");
    time.advance(24 * hour);
    await passing("the pack store has none of it", () => orphans().length === 0, hour);
    await copy.must("fetch", "-q", url, "main");
    assert.equal(await copy.must("rev-parse", "FETCH_HEAD"), main);
  });

  test("a machine that was away when unclaimed data ended has it no more after its next start", async () => {
    await begin();
    const alice = person();
    const { work } = await story.hosted(alice, "away");
    const tip = await work.commit("parked");
    const leader = await leaderOf();
    const follower = cluster.machines.find((machine) => machine !== leader);
    assert.ok(follower);
    const asideAt = ({ gitPath }: TestServer): string[] => asideIn(join(gitPath, alice.npub, "away.git"));
    for (const machine of [follower, leader]) {
      const url = `${machine.origin}/${alice.npub}/away.git`;
      await work.must("push", "-q", url, `${tip}:refs/nostr/${anId()}`);
      assert.equal(await bring(url, largeFileOf(`brought to ${url}`)), 200);
      assert.equal(asideAt(machine).length, 2);
    }
    await cluster.remove(follower);
    time.advance(31 * minute);
    await passing("the leader has ended all of it", () => asideAt(leader).length === 0);
    assert.equal(asideAt(follower).length, 2);
    await cluster.add(basename(follower.folder));
    await passing("the one that was away has followed", () => asideAt(follower).length === 0);
  });
});

test("a wait whose leader is killed ends at its time, by the one that leads then", async () => {
  const waitSeconds = 12;
  const settings = { NGIT_PURGATORY_EXPIRY_SECS: String(waitSeconds) };
  const cluster = await ClusterOfProcesses.start({ postgres, settings });
  try {
    await cluster.allReady();
    await untilSo("a machine leads", async () => (await cluster.leader()) !== undefined);
    const leader = await cluster.leader();
    assert.ok(leader !== undefined);
    const pusher = await Pusher.make(cluster.folder, cluster.domain, "orphaned", 5);
    const announcedMs = performance.now();
    assert.equal((await pusher.announce(cluster))?.ok, true);
    const killed = cluster.machine(leader);
    killed.child.kill("SIGKILL");
    await killed.ended;
    cluster.machines.delete(leader);
    const machines = [...cluster.machines.values()];
    const isServed = async (): Promise<boolean[]> =>
      Promise.all(machines.map(async (machine) => (await pusher.refs(machine)) !== undefined));
    assert.deepEqual(await isServed(), [true, true], "whoever led did not end it");
    await untilSo("the wait ends", async () => !(await isServed()).some(Boolean));
    // Times are whole seconds.
    assert.ok(performance.now() - announcedMs >= (waitSeconds - 1) * 1_000);
    assert.notEqual(await cluster.leader(), undefined);
  } finally {
    await cluster.end();
  }
});
