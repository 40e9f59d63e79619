// The server is killed (SIGKILL) at named points of a push and its release, then started again on what it left, and
// that one killed at the next point. `npm test` tries a few points, `npm run faults` and continuous integration all.
// After each: what was acknowledged is there, states served and refs held agree, nothing is left over, nobody has to
// do anything by hand.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story, stateEvent, type WorkingCopy } from "../harness/grasp-story.js";
import { type ChildServer, newFolder, removeFolder, startChild, until } from "../harness/server.js";
import { isEveryFault } from "./every-fault.js";
import { armedText, type Order } from "./orders.js";

const program = fileURLToPath(new URL("./program.js", import.meta.url));

/** With the number of the passing that this story is about: some are passed on the way to it. */
const points: Readonly<Record<string, number>> = {
  "a state is held, git has not followed": 1,
  "a quarantine is open": 1,
  "a push is about to take its locks": 1,
  "a push has its locks, its packs are in quarantine": 1,
  "a pack is in place, its index is not": 1,
  "the packs are in place, the refs are not": 1,
  "a push is about to be written": 1,
  "the release begins": 2,
  "the siblings have objects, not refs": 1,
  "every repository is planned, nothing is committed": 2,
  "refs and events are about to be committed": 1,
  "refs and events are committed, git's refs are not in line": 1,
  "a branch is in one repository's files, not yet in the others'": 1,
  "git update-ref runs": 1,
  "git's refs are in line, they are not synced": 1,
  "refs and events are written everywhere": 1,
  "a push is written, what follows is not done": 1,
  "everything is released, the report is not sent": 1,
  "git's refs are about to be synced": 1,
  "git's refs are synced, their version is not recorded": 1,
  "the version of git's refs is recorded": 1,
  "a commit of the store is done": 2,
};

/** Before, between and after what is written in the two places that must agree, the store and git's refs. */
const few: ReadonlySet<string> = new Set([
  "the packs are in place, the refs are not",
  "refs and events are committed, git's refs are not in line",
  "git's refs are in line, they are not synced",
]);

interface Scene {
  readonly alice: Person;
  readonly bob: Person;
  readonly work: WorkingCopy;
  readonly first: string;
  readonly second: string;
  readonly state: SignedEvent;
  readonly hasOld: boolean;
}

describe("kill -9 loses nothing acknowledged", () => {
  const stories = Object.entries(points).filter(([point]) => isEveryFault || few.has(point));
  let folder = "";
  /** The one that was started on what the last one left; it has the next order. */
  let successor: ChildServer | undefined;
  before(async () => {
    folder = await newFolder();
  });
  after(async () => {
    await successor?.stop();
    const left = processesIn(folder);
    await removeFolder(folder);
    assert.deepEqual(left, []);
  });

  const startFor = (index: number): Promise<ChildServer> => {
    const [point = "", pass = 1] = stories[index] ?? [];
    const order: Order = { type: "strike", point, pass, target: "server", signal: "SIGKILL" };
    return startChild({ backend: "lmdb", folder, program, args: [JSON.stringify(order)] });
  };

  for (const [index, [point]] of stories.entries()) {
    it(`when ${point}`, async () => {
      const server = successor ?? (await startFor(index));
      successor = undefined;
      try {
        const { scene, pushed } = await pushUntilKilled(server, index, point.includes("update-ref"));
        assert.ok(await until(() => processesIn(folder).length === 0), "its git processes ended with it");
        successor = await startFor(index + 1);
        await checkAfter(await Story.on(successor), scene, pushed);
      } finally {
        server.child.kill("SIGKILL");
        await server.ended;
      }
    });
  }
});

async function pushUntilKilled(
  server: ChildServer,
  seed: number,
  /** A branch goes with the second state: that is git's to write. */
  hasOld: boolean,
): Promise<{ readonly scene: Scene; readonly pushed: boolean }> {
  const story = await Story.on(server);
  const [alice, bob] = [new Person(), new Person()];
  const listing = (owner: Person) => story.announcement(owner, "safe", [["maintainers", alice.pubkey, bob.pubkey]]);
  await story.accepted(listing(alice));
  const work = await story.workingCopy();
  const first = await work.commit(`one ${seed}`);
  await story.state(alice, "safe", { "refs/heads/main": first, ...(hasOld && { "refs/heads/old": first }) });
  await work.must("push", "-q", story.url(alice, "safe"), "main", ...(hasOld ? ["main:old"] : []));
  await story.accepted(listing(bob));
  const second = await work.commit(`two ${seed}`);
  const state = stateEvent(alice, "safe", { "refs/heads/main": second });
  server.child.kill("SIGUSR2");
  assert.ok(await until(() => server.log().includes(armedText)));
  const scene = { alice, bob, work, first, second, state, hasOld };
  story.relay.send("EVENT", state);
  const isHeld = await until(
    () => story.relay.heard.some(([verb, id]) => verb === "OK" && id === state.id) || server.child.signalCode !== null,
  );
  assert.ok(isHeld);
  const pushed =
    server.child.signalCode === null && (await work.git("push", story.url(alice, "safe"), "main")).code === 0;
  assert.equal((await server.ended).signal, "SIGKILL", "the point was reached");
  return { scene, pushed };
}

async function checkAfter(story: Story, scene: Scene, wasPushed: boolean): Promise<void> {
  const { alice, bob, work, first, second, state, hasOld } = scene;
  const refs = await Promise.all([alice, bob].map((owner) => story.advertised(owner, "safe")));
  const isServed = await story.isServed(state);
  if (wasPushed) assert.ok(isServed, "the push was acknowledged");
  for (const shown of refs) assert.equal(shown["refs/heads/main"], isServed ? second : first, "states and refs agree");
  const old = hasOld && !isServed ? first : undefined;
  for (const shown of refs) assert.equal(shown["refs/heads/old"], old, "states and refs agree");
  for (const owner of [alice, bob]) {
    const directory = story.directory(owner, "safe");
    const fsck = await runProgram("git", [`--git-dir=${directory}`, "fsck", "--strict"]);
    assert.equal(fsck.code, 0, fsck.stderr);
    const left = readdirSync(directory, { recursive: true }).map(String);
    assert.deepEqual(
      left.filter((name) => /\.lock$|tmp_/.test(name)),
      [],
    );
  }
  // And it goes on from here without anybody's help.
  await story.publish(state);
  await work.must("push", "-q", story.url(alice, "safe"), "main");
  assert.ok(await story.isServed(state));
  for (const owner of [alice, bob]) assert.equal((await story.advertised(owner, "safe"))["refs/heads/main"], second);
  await story.relay.close();
}

/** Processes that have a file of this folder in their command line or environment. */
function processesIn(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
      } catch {
        return false;
      }
    });
}
