// What must happen when the pack store fails (scale-out.md, the table), with whole servers in processes of their own, a real
// PostgreSQL, and packs in a directory as well as in a real S3 server.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runProgram } from "../harness/git-server.js";
import { untilSo } from "../harness/server.js";
import {
  cannotHave,
  newPackPlace,
  type Outage,
  outagesOf,
  type PackKind,
  type PackPlace,
  packKinds,
} from "./pack-place.js";
import { type Place, Pusher } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { ClusterOfProcesses } from "./whole-cluster.js";

/** A silent store is waited for once, for less than half of this: not once by each of those that wait for each other. */
const refusedWithinMs = 50_000;
/** Less than a silent store is waited for. */
const servedWithinMs = 15_000;

async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  const begun = performance.now();
  const result = await work;
  const took = Math.round(performance.now() - begun);
  assert.ok(took < ms, `${what} took ${took} ms`);
  return result;
}

const damages: Readonly<Record<string, (file: string) => Promise<void>>> = {
  deleted: (file) => rm(file),
  "replaced by other bytes": (file) => writeFile(file, "rotten"),
  "altered in one byte": async (file) => {
    const bytes = await readFile(file);
    const at = bytes.length >> 1;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    await writeFile(file, bytes);
  },
};

function testOutages(kind: PackKind): void {
  let postgres: TestPostgres;
  let packs: PackPlace;
  let cluster: ClusterOfProcesses;
  let count = 0;

  before(async () => {
    postgres = await TestPostgres.start();
    packs = await newPackPlace(kind);
    cluster = await ClusterOfProcesses.start({ postgres, packSettings: packs.settings });
  });
  after(async () => {
    await cluster.end();
    await packs.dispose();
    await postgres.dispose();
  });

  async function hosted(): Promise<Pusher> {
    const pusher = await Pusher.make(cluster.folder, cluster.domain, `r${count++}`, count);
    assert.equal((await pusher.announce(cluster))?.ok, true);
    const first = await pusher.push(cluster, cluster);
    assert.ok(first.isDone, first.said);
    return pusher;
  }

  const isSound = async (pusher: Pusher): Promise<void> =>
    assert.deepEqual(await pusher.problems([...cluster.machines.values()], cluster.folder), []);

  const clone = (pusher: Pusher, place: Place): ReturnType<typeof runProgram> =>
    runProgram("git", ["clone", "-q", pusher.url(place), join(cluster.folder, `clone${count++}`)], { cwd: "/" });

  /** With that pusher's newest pack on the first machine alone, and the third one not running. */
  async function lookWhileAway(pusher: Pusher, other: Pusher): Promise<void> {
    const [one, two] = [cluster.machine("one"), cluster.machine("two")];
    const refused = async (whose: Pusher, to: Place): Promise<void> => {
      const { isDone, said } = await whose.push(one, to);
      assert.equal(isDone, false);
      assert.match(said, /error: the pack store cannot be reached: try again later/);
    };
    const served = async (): Promise<void> => {
      const local = await within(servedWithinMs, "a clone of what is here", clone(pusher, one));
      assert.equal(local.code, 0, local.stderr);
    };
    const notServed = async (): Promise<void> => {
      const answer = await fetch(`${pusher.url(two)}/info/refs?service=git-upload-pack`);
      const isTrue = answer.status === 503 || (await answer.text()).includes(tip);
      assert.ok(isTrue, `never an empty repository, ${answer.status}`);
      const far = await clone(pusher, two);
      assert.notEqual(far.code, 0);
      assert.match(far.stderr, /503/);
    };
    const notStarted = (): Promise<void> => assert.rejects(cluster.run("three"), /did not start: .*\(pack-store\)/s);
    const tip = pusher.tips.at(-1) ?? assert.fail("nothing was pushed");
    // Twice to the same repository: the second push does not wait for the store as long again.
    const twice = refused(other, one).then(() => refused(other, one));
    await within(
      refusedWithinMs,
      "to be refused",
      Promise.all([twice, refused(pusher, two), served(), notServed(), notStarted()]),
    );
    await served();
  }

  for (const [index, what] of outagesOf[kind].entries()) {
    test(`while ${what} pushes are refused with a sentence, what is here is served, the rest is 503, and nobody has to do anything afterwards`, async () => {
      const [pusher, other] = [await hosted(), await hosted()];
      const [one, two] = [cluster.machine("one"), cluster.machine("two")];
      await cluster.machine("three").stop();
      const outage = packs.outages[index] as Outage;
      // The second machine hears of this push when the store is away.
      two.child.kill("SIGSTOP");
      try {
        assert.ok((await pusher.push(one, one)).isDone);
        await outage.begin();
      } finally {
        two.child.kill("SIGCONT");
      }
      try {
        await lookWhileAway(pusher, other);
      } finally {
        await outage.end();
      }
      for (const whose of [pusher, other]) {
        await untilSo("a push is taken again", async () => (await whose.push(one, two)).isDone);
      }
      assert.deepEqual([one.child.exitCode, two.child.exitCode], [null, null], "nobody had to start them again");
      await cluster.run("three");
      await cluster.allReady();
      for (const whose of [pusher, other]) await isSound(whose);
    });
  }

  for (const [how, damage] of Object.entries(damages)) {
    test(`a pack that is ${how} in the pack store is noticed, and put there again by a machine that has it`, async () => {
      const pusher = await hosted();
      await isSound(pusher);
      await cluster.machine("three").stop();
      await rm(join(cluster.folderOf("three"), "git"), { recursive: true, force: true });
      const folder = join(packs.folder, "main", pusher.person.pubkey, pusher.identifier);
      const stored = (await readdir(folder)).filter((name) => name.endsWith(".pack"));
      assert.ok(stored.length > 0, "its packs are in the store");
      for (const name of stored) await damage(join(folder, name));
      await cluster.run("three");
      await cluster.allReady();
      await untilSo("it is served from there", async () => (await clone(pusher, cluster.machine("three"))).code === 0);
      for (const name of stored) {
        const bytes = await readFile(join(folder, name));
        assert.equal(createHash("sha256").update(bytes).digest("hex"), name.slice(0, -".pack".length));
      }
      await isSound(pusher);
    });
  }
}

for (const kind of packKinds) {
  describe(`a cluster of processes with its packs in ${kind}`, { timeout: 900_000, skip: cannotHave(kind) }, () =>
    testOutages(kind),
  );
}
