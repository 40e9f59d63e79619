// Git data of a cluster: whole servers on one log and one pack store, each request sent to another of them. What one machine
// takes the others serve; what cannot be had is said to be so; nothing is taken for empty.

import assert from "node:assert/strict";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { systemClock } from "../../src/base/clock.js";
import { databasePlace } from "../../src/cluster/database-place.js";
import { Leadership } from "../../src/cluster/leadership.js";
import { RepositoryLocks } from "../../src/cluster/repository-locks.js";
import { DirectoryPackStore } from "../../src/packs/directory.js";
import { type Moved, type PackStore, PackStoreError } from "../../src/packs/port.js";
import type { ClusterStore } from "../../src/store/postgres/open.js";
import { Person } from "../harness/grasp-people.js";
import { Story, stateEvent } from "../harness/grasp-story.js";
import { batch, type LargeFile, largeFileOf, pointerTo, put } from "../harness/lfs-client.js";
import { ask } from "../harness/raw-http.js";
import { startInProcess, untilSo } from "../harness/server.js";
import { TestPostgres } from "./postgres.js";
import { newFolders, newSchema, openNode } from "./three-nodes.js";

const domain = "cluster.example.com";
const folders = newFolders();
const schema = newSchema();
let postgres: TestPostgres;
let packFolder: string;

interface Machine {
  readonly node: ClusterStore;
  readonly locks: RepositoryLocks;
  readonly story: Story;
}
const machines: Machine[] = [];

/** One machine's way to the pack store is cut. */
class CutOffStore extends DirectoryPackStore {
  isCutOff = true;

  override fetch(...args: Parameters<DirectoryPackStore["fetch"]>): Promise<Moved> {
    return this.isCutOff ? Promise.reject(new PackStoreError("unreachable", "cut off")) : super.fetch(...args);
  }

  override put(...args: Parameters<DirectoryPackStore["put"]>): Promise<Moved> {
    return this.isCutOff ? Promise.reject(new PackStoreError("unreachable", "cut off")) : super.put(...args);
  }
}

async function start(name: string, packs: PackStore = new DirectoryPackStore(packFolder)): Promise<Machine> {
  const leadership = new Leadership(systemClock);
  const node = await openNode(postgres, {
    ...{ schema, name, folder: folders.folder(name), packs: new DirectoryPackStore(packFolder) },
    leads: (epoch) => leadership.begin(epoch),
    leadsNoMore: () => leadership.end(),
  });
  const settings = { NGIT_DOMAIN: domain, NGIT_GRASP06_ENABLE: "true" };
  const place = databasePlace(postgres.url(), schema);
  const locks = new RepositoryLocks({ place, clock: systemClock, name });
  await locks.open();
  const server = await startInProcess({ store: node.store, clock: node.clock, leadership, packs, locks, settings });
  const machine = { node, locks, story: await Story.on(server) };
  machines.push(machine);
  return machine;
}

async function stop({ node, story, locks }: Machine): Promise<void> {
  machines.splice(
    machines.findIndex((one) => one.node === node),
    1,
  );
  await story.end().catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error;
  });
  await locks.close();
  await node.close();
}

let turn = 0;
/** As a load balancer sends it: to the next one. */
const next = (): Story => (machines[turn++ % machines.length] as Machine).story;

before(async () => {
  postgres = await TestPostgres.start();
  packFolder = folders.folder("packs");
  await mkdir(packFolder, { recursive: true });
  for (const name of ["a", "b", "c"]) await start(name);
});
after(async () => {
  for (const machine of [...machines]) await stop(machine);
  await postgres.dispose();
  folders.dispose();
});

const announcement = (person: Person, identifier: string, more: readonly (readonly string[])[] = []) =>
  person.sign(30617, [
    ["d", identifier],
    ["clone", `https://${domain}/${person.npub}/${identifier}.git`],
    ["relays", `wss://${domain}`],
    ...more,
  ]);

async function hosted(person: Person, identifier: string, more: readonly (readonly string[])[] = []) {
  await next().accepted(announcement(person, identifier, more));
  const work = await next().workingCopy();
  const tip = await work.commit(`one of ${identifier}`);
  await next().accepted(stateEvent(person, identifier, { "refs/heads/main": tip }));
  await work.must("push", "-q", next().url(person, identifier), "main");
  return { work, tip };
}

/** From each machine, with what it says the branch is. */
async function clonesOf(person: Person, identifier: string): Promise<string[]> {
  const tips: string[] = [];
  for (const { story } of machines) {
    const copy = await story.workingCopy();
    await copy.must("fetch", "-q", story.url(person, identifier), "main");
    tips.push(await copy.must("rev-parse", "FETCH_HEAD"));
  }
  return tips;
}

test("each step of a repository's life may go to another machine, and every machine serves what came of it", async () => {
  const alice = new Person();
  const { work, tip } = await hosted(alice, "story");
  assert.deepEqual(
    await clonesOf(alice, "story"),
    machines.map(() => tip),
  );
  let last = tip;
  for (let round = 0; round < 4; round++) {
    last = await work.commit(`more ${round}`);
    await next().accepted(stateEvent(alice, "story", { "refs/heads/main": last }));
    await work.must("push", "-q", next().url(alice, "story"), "main");
    assert.deepEqual(
      await clonesOf(alice, "story"),
      machines.map(() => last),
    );
  }
  for (const { story } of machines) assert.equal((await story.advertised(alice, "story")).HEAD, last);
  assert.deepEqual(
    (await readdir(join(packFolder, "main", alice.pubkey, "story"))).some((name) => name.endsWith(".idx")),
    true,
  );
});

test("a pull request's data that is pushed to one machine before its event is claimed by the event on another", async () => {
  const [owner, stranger] = [new Person(), new Person()];
  const { work } = await hosted(owner, "claimed");
  await work.must("checkout", "-q", "-b", "proposal");
  const tip = await work.commit("proposed");
  const event = stranger.sign(1618, [
    ["a", owner.coordinate("claimed")],
    ["p", owner.pubkey],
    ["c", tip],
    ["clone", `https://${domain}/${owner.npub}/claimed.git`],
  ]);
  await work.must("push", "-q", next().url(owner, "claimed"), `proposal:refs/nostr/${event.id}`);
  assert.equal((await next().publish(event)).ok, true);
  for (const { story } of machines) {
    await untilSo("it is served", () => story.isServed(event));
    assert.equal((await story.advertised(owner, "claimed"))[`refs/nostr/${event.id}`], tip);
    const copy = await story.workingCopy();
    await copy.must("fetch", "-q", story.url(owner, "claimed"), `refs/nostr/${event.id}`);
  }
  const prs = stranger.sign(1618, [
    ["a", owner.coordinate("claimed")],
    ["p", owner.pubkey],
    ["c", await work.commit("under prs")],
    ["clone", `https://${domain}/prs/${stranger.npub}/claimed.git`],
  ]);
  const path = `/prs/${stranger.npub}/claimed.git`;
  await work.must("push", "-q", `${next().server.origin}${path}`, `proposal:refs/nostr/${prs.id}`);
  const copy = await next().workingCopy();
  await copy.must("fetch", "-q", `${next().server.origin}${path}`, `refs/nostr/${prs.id}`);
  assert.equal((await next().publish(prs)).ok, true);
  for (const { story } of machines) await untilSo("it is served", () => story.isServed(prs));
});

test("two maintainers' repositories on different machines get each other's objects", async () => {
  const [alice, bob] = [new Person(), new Person()];
  const { work } = await hosted(alice, "both", [["maintainers", bob.pubkey]]);
  await next().accepted(announcement(bob, "both", [["maintainers", alice.pubkey]]));
  const tip = await work.commit("of both");
  await next().accepted(stateEvent(bob, "both", { "refs/heads/main": tip }));
  await work.must("push", "-q", next().url(bob, "both"), "main");
  assert.deepEqual(
    await clonesOf(bob, "both"),
    machines.map(() => tip),
  );
  assert.deepEqual(
    await clonesOf(alice, "both"),
    machines.map(() => tip),
  );
});

/** The addresses it gives are the cluster's: asked of one machine. */
const at = ({ server }: Story, href: string): string => href.replace(`https://${domain}`, server.origin);

async function uploaded(story: Story, person: Person, file: LargeFile): Promise<number> {
  const { objects } = await batch(story.url(person, "large"), "upload", [file]);
  return (await put(at(story, objects[0]?.actions?.upload.href ?? ""), file.content)).status;
}

async function downloaded(story: Story, person: Person, file: LargeFile): Promise<string> {
  const { objects } = await batch(story.url(person, "large"), "download", [file]);
  const href = objects[0]?.actions?.download.href;
  return href === undefined ? "" : (await ask(at(story, href))).text;
}

test("a large file that one machine takes every machine gives", async () => {
  const alice = new Person();
  const { work } = await hosted(alice, "large");
  const file = largeFileOf("a large file, as far as this test goes");
  assert.equal(await uploaded(next(), alice, file), 200);
  const tip = await work.commit(pointerTo(file), "big.bin");
  await next().accepted(stateEvent(alice, "large", { "refs/heads/main": tip }));
  await work.must("push", "-q", next().url(alice, "large"), "main");
  for (const { story } of machines) {
    await untilSo("it is given", async () => (await downloaded(story, alice, file)) === file.content.toString());
  }
});

test("a machine that comes new serves everything, and one that was away what came meanwhile", async () => {
  const alice = new Person();
  const { work, tip } = await hosted(alice, "late");
  const late = await start("d");
  assert.deepEqual(
    await clonesOf(alice, "late"),
    machines.map(() => tip),
  );
  await stop(late);
  const more = await work.commit("while d was away");
  await next().accepted(stateEvent(alice, "late", { "refs/heads/main": more }));
  await work.must("push", "-q", next().url(alice, "late"), "main");
  const back = await start("d");
  assert.deepEqual(
    await clonesOf(alice, "late"),
    machines.map(() => more),
  );
  await stop(back);
});

test("pushes to one repository that come to two machines at once both count", async () => {
  const alice = new Person();
  const { work, tip } = await hosted(alice, "contended");
  for (let round = 0; round < 3; round++) {
    const branches = machines.map((_, index) => `branch-${round}-${index}`);
    const refs: Record<string, string> = { "refs/heads/main": tip };
    for (const branch of branches) {
      await work.must("checkout", "-q", "-b", branch, tip);
      refs[`refs/heads/${branch}`] = await work.commit(branch, branch);
    }
    await next().accepted(stateEvent(alice, "contended", refs));
    await Promise.all(
      branches.map((branch, index) =>
        work.must("push", "-q", (machines[index] as Machine).story.url(alice, "contended"), branch),
      ),
    );
    for (const { story } of machines) {
      const { HEAD: _, ...advertised } = await story.advertised(alice, "contended");
      assert.deepEqual(advertised, refs);
      const copy = await story.workingCopy();
      await copy.must("fetch", "-q", story.url(alice, "contended"), "refs/heads/*:refs/remotes/x/*");
      await copy.must("fsck", "--strict");
    }
  }
});

test("a machine sees that another works in a repository, and waits for it only for a moment", async () => {
  const [a, b] = machines as [Machine, Machine];
  assert.equal(await b.locks.isBusyElsewhere("some repository"), false);
  const unmark = a.locks.mark("some repository");
  await untilSo("it is seen", () => b.locks.isBusyElsewhere("some repository"));
  assert.equal(await a.locks.isBusyElsewhere("some repository"), false, "its own work is none elsewhere");
  unmark();
  await untilSo("its end is seen", async () => !(await b.locks.isBusyElsewhere("some repository")));
  await a.locks.during(["x", "y"], async () => {
    assert.equal(await b.locks.isBusyElsewhere("x"), true);
    const order: string[] = [];
    // Whoever does not get it goes on without it: the transaction decides.
    await b.locks.during(["x"], async () => void order.push("b"));
    assert.deepEqual(order, ["b"]);
  });
  await untilSo("it is free", async () => !(await b.locks.isBusyElsewhere("x")));
  const order: string[] = [];
  let leave = (): void => undefined;
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const first = a.locks.during(["z"], () => left);
  await untilSo("it is held", () => b.locks.isBusyElsewhere("z"));
  const second = b.locks.during(["z"], async () => void order.push("second"));
  order.push("first");
  leave();
  await Promise.all([first, second]);
  assert.deepEqual(order, ["first", "second"]);
});

test("without the pack store pushes are refused, what is here is served, and the rest is 503", async () => {
  const alice = new Person();
  const { work, tip } = await hosted(alice, "outage");
  assert.deepEqual(
    await clonesOf(alice, "outage"),
    machines.map(() => tip),
  );
  const more = await work.commit("refused at first");
  await next().accepted(stateEvent(alice, "outage", { "refs/heads/main": more }));
  const cutOff = new CutOffStore(packFolder);
  const late = await start("e", cutOff);
  assert.equal((await late.story.advertised(alice, "outage"))["refs/heads/main"], tip, "never an empty repository");
  const copy = await late.story.workingCopy();
  const refused = await copy.git("fetch", late.story.url(alice, "outage"), "main");
  assert.match(refused.stderr, /503/);
  const notPushed = await work.git("push", late.story.url(alice, "outage"), "main");
  assert.notEqual(notPushed.code, 0);
  assert.match(notPushed.stderr, /pack store cannot be reached/);
  const here = await next().workingCopy();
  await here.must("fetch", "-q", (machines[0] as Machine).story.url(alice, "outage"), "main");
  cutOff.isCutOff = false;
  await untilSo("it is served when the store is back", async () => {
    const fetched = await copy.git("fetch", "-q", late.story.url(alice, "outage"), "main");
    return fetched.code === 0;
  });
  await work.must("push", "-q", late.story.url(alice, "outage"), "main");
  assert.deepEqual(
    await clonesOf(alice, "outage"),
    machines.map(() => more),
  );
  await stop(late);
});
