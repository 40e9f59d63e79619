// A new version on one machine after the other, while people push: beside an earlier version that was released, and one that
// writes a newer form of the log, which older machines cannot read. The machines are processes.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { lockFile } from "../../src/base/data-lock.js";
import { newestFormat } from "../../src/store/postgres/body.js";
import { program as thisVersion } from "../cli/run.js";
import { runProgram } from "../harness/git-server.js";
import { untilSo } from "../harness/server.js";
import { makeNextVersion, nextFormat } from "./next-version.js";
import { Pusher, told } from "./people.js";
import { TestPostgres } from "./postgres.js";
import { newFolders } from "./three-nodes.js";
import { ClusterOfProcesses } from "./whole-cluster.js";

const folders = newFolders();
let postgres: TestPostgres;
let nextProgram: string;
before(async () => {
  postgres = await TestPostgres.start();
  nextProgram = makeNextVersion(folders.folder("next"));
});
after(async () => {
  await postgres.dispose();
  folders.dispose();
});

const takesLong = { timeout: 300_000 };
const earlier = process.env.HOLDFAST_EARLIER;

/** As an operator says it on a machine with that version. */
function upgrade(cluster: ClusterOfProcesses, program: string): ReturnType<typeof runProgram> {
  const env = { ...cluster.settingsOf("one"), NGIT_DATABASE_BACKEND: "postgres" };
  return runProgram(process.execPath, [program, "cluster", "upgrade"], { cwd: cluster.folder, env });
}

async function newPusher(cluster: ClusterOfProcesses): Promise<Pusher> {
  const pusher = await Pusher.make(cluster.folder, cluster.domain, "upgraded", 11);
  assert.equal((await pusher.announce(cluster))?.ok, true);
  return pusher;
}

async function push(pusher: Pusher, cluster: ClusterOfProcesses): Promise<void> {
  const { isDone, said } = await pusher.push(cluster, cluster);
  assert.ok(isDone, said);
  assert.ok(await pusher.say(cluster, `${pusher.tips.length}`));
}

/** Pushes one commit after the other until it is ended. */
class Pushing {
  #isOver = false;
  readonly #going: Promise<void>;

  constructor(
    readonly pusher: Pusher,
    readonly cluster: ClusterOfProcesses,
  ) {
    this.#going = this.#go();
    // Told to whoever ends it.
    this.#going.catch(() => undefined);
  }

  async #go(): Promise<void> {
    while (!this.#isOver) await push(this.pusher, this.cluster);
  }

  /** Waits for the push that is under way and for one that began after now. */
  async goesOn(): Promise<void> {
    const { acknowledged } = this.pusher;
    const enough = acknowledged.size + 2;
    await Promise.race([untilSo("pushes go on", () => acknowledged.size >= enough), this.#going]);
  }

  /** Throws when a push was refused. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#going;
  }
}

/** As operators do it: first no requests go there any more, and those it has are answered. */
async function takeOut(cluster: ClusterOfProcesses, name: string, pushing?: Pushing): Promise<void> {
  const machine = cluster.machine(name);
  cluster.balancer.machines = cluster.balancer.machines.filter((port) => port !== machine.port);
  await pushing?.goesOn();
  await machine.stop();
}

async function install(cluster: ClusterOfProcesses, name: string, program: string): Promise<void> {
  await cluster.run(name, program);
  await untilSo(`${name} is ready`, () => cluster.isReady(name));
}

test("a new version is installed on one machine after the other while people push, and one command ends it", {
  ...takesLong,
  skip: earlier === undefined && "no earlier version could be built",
}, async () => {
  const cluster = await ClusterOfProcesses.start({ postgres, ...(earlier === undefined ? {} : { program: earlier }) });
  try {
    const pusher = await newPusher(cluster);
    await push(pusher, cluster);
    for (const name of [...cluster.machines.keys()]) {
      await cluster.machine(name).stop();
      await push(pusher, cluster);
      await install(cluster, name, thisVersion);
      for (let turn = 0; turn < 3; turn++) await push(pusher, cluster);
    }
    const upgraded = await upgrade(cluster, thisVersion);
    assert.equal(upgraded.code, 0, upgraded.stderr);
    await push(pusher, cluster);
    assert.deepEqual(await pusher.problems([...cluster.machines.values()], cluster.folder), []);
  } finally {
    await cluster.end();
  }
});

/** The form of each machine's newest change, by its name. */
async function writtenFormats({ schema }: ClusterOfProcesses): Promise<Record<string, unknown>> {
  const rows = await postgres.sql(
    `SELECT DISTINCT ON (node.name) node.name, change.format FROM ${schema}.change
     JOIN ${schema}.node ON node.node::text = change.node ORDER BY node.name, n DESC`,
  );
  return Object.fromEntries(rows.map(({ name, format }) => [String(name), format]));
}

const all = (format: number): Record<string, number> => ({ one: format, two: format, three: format });

interface Traces {
  /** How the cluster writes. */
  readonly written: unknown;
  readonly rows: readonly unknown[];
  readonly files: readonly unknown[];
}

/** What the database says about a machine, and what its data directories hold. */
async function tracesOf(cluster: ClusterOfProcesses, name: string): Promise<Traces> {
  const { schema } = cluster;
  const [format] = await postgres.sql(`SELECT format FROM ${schema}.format`);
  const rows = await postgres.sql(
    `SELECT *, (SELECT count(*) FROM ${schema}.change WHERE change.node = node.node::text) AS changes
     FROM ${schema}.node WHERE name = '${name}'`,
  );
  const files = ["git", "relay"].flatMap((folder) => filesIn(join(cluster.folderOf(name), folder)));
  return { written: format?.format, rows, files };
}

const tooOld = `the cluster writes format ${nextFormat}.*this program knows ${newestFormat}.*install the newer version here`;
const isTooOld = new RegExp(tooOld);
const isRefusedAtStart = new RegExp(`${tooOld} \\(newer-format\\)`);

/** Each with a digest of its bytes. */
function filesIn(folder: string): (readonly [string, string])[] {
  if (!existsSync(folder)) return [];
  const found = readdirSync(folder, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.isFile() && entry.name !== lockFile)
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path, createHash("sha256").update(readFileSync(path)).digest("hex")] as const);
}

test(
  "a version that writes a newer form replaces the older one while people push; the form changes when no older machine lives, and an older one that is started then touches nothing",
  takesLong,
  async () => {
    const cluster = await ClusterOfProcesses.start({ postgres });
    try {
      const pusher = await newPusher(cluster);
      const pushing = new Pushing(pusher, cluster);
      await pushing.goesOn();
      const version = JSON.parse(readFileSync("package.json", "utf8")).version as string;
      for (const [name, left] of [
        ["one", `three (${version}), two (${version})`],
        ["two", `three (${version})`],
      ] as const) {
        await takeOut(cluster, name, pushing);
        await install(cluster, name, nextProgram);
        await pushing.goesOn();
        const tooEarly = await upgrade(cluster, nextProgram);
        assert.equal(tooEarly.code, 1);
        assert.ok(
          tooEarly.stderr.includes(`${left} cannot read format ${nextFormat}: install this version`),
          tooEarly.stderr,
        );
      }
      await takeOut(cluster, "three", pushing);
      await install(cluster, "three", nextProgram);
      await pushing.goesOn();
      // Whoever can read the newer form writes the older one until the operator says so.
      assert.deepEqual(await writtenFormats(cluster), all(newestFormat));

      const upgraded = await upgrade(cluster, nextProgram);
      assert.equal(upgraded.code, 0, upgraded.stderr);
      await untilSo("all machines write the newer form", async () =>
        isDeepStrictEqual(await writtenFormats(cluster), all(nextFormat)),
      );
      await pushing.goesOn();

      await takeOut(cluster, "three", pushing);
      const before = await tracesOf(cluster, "three");
      assert.deepEqual([before.rows.length, before.files.length > 0], [1, true]);
      await assert.rejects(cluster.run("three", thisVersion), isRefusedAtStart);
      assert.deepEqual(await tracesOf(cluster, "three"), before);
      await assert.rejects(cluster.run("four", thisVersion), isRefusedAtStart);
      assert.deepEqual(await tracesOf(cluster, "four"), { written: nextFormat, rows: [], files: [] });
      const byTheOlder = await upgrade(cluster, thisVersion);
      assert.equal(byTheOlder.code, 1, byTheOlder.stdout);
      assert.match(byTheOlder.stderr, isTooOld);
      await pushing.goesOn();
      await install(cluster, "three", nextProgram);
      await pushing.goesOn();
      await pushing.end();
      assert.deepEqual(await pusher.problems([...cluster.machines.values()], cluster.folder), []);
    } finally {
      await cluster.end();
    }
  },
);

test(
  "a machine of the older version that stood still during the upgrade stops serving when it wakes, until the newer version is installed",
  takesLong,
  async () => {
    const cluster = await ClusterOfProcesses.start({ postgres, size: 2 });
    try {
      const pusher = await newPusher(cluster);
      await push(pusher, cluster);
      await takeOut(cluster, "one");
      await install(cluster, "one", nextProgram);
      const older = cluster.machine("two");
      cluster.balancer.machines = [cluster.machine("one").port];
      older.child.kill("SIGSTOP");
      await untilSo("it is not waited for any more", async () => (await upgrade(cluster, nextProgram)).code === 0);
      await untilSo("a change of the newer form is in the log", async () => {
        await push(pusher, cluster);
        return (await writtenFormats(cluster)).one === nextFormat;
      });
      const asked = told(older, pusher.person.sign(1621, [["a", pusher.person.coordinate(pusher.identifier)]], "late"));
      older.child.kill("SIGCONT");
      await untilSo("it has ended and may not begin again", () => isRefusedAtStart.test(older.log()));
      assert.notEqual((await asked)?.ok, true);
      assert.equal(await cluster.isReady("two"), false);
      assert.equal(await pusher.shown(older), undefined);
      // Its copy of the data is good: the newer version goes on from it.
      assert.doesNotMatch(older.log(), /built anew at the next start/);
      await push(pusher, cluster);
      await takeOut(cluster, "two");
      await install(cluster, "two", nextProgram);
      for (let turn = 0; turn < 3; turn++) await push(pusher, cluster);
      assert.deepEqual(await pusher.problems([...cluster.machines.values()], cluster.folder), []);
    } finally {
      await cluster.end();
    }
  },
);
