// /prs/ over restarts and kills: what waits goes on waiting, what was acknowledged is there, leftovers are removed.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { isEveryFault } from "../faults/every-fault.js";
import { armedText, type Order } from "../faults/orders.js";
import { runProgram } from "../harness/git-server.js";
import { Person, type SignedEvent } from "../harness/grasp-people.js";
import { Story, type WorkingCopy } from "../harness/grasp-story.js";
import { type ChildServer, newFolder, removeFolder, startChild, startInProcess, until } from "../harness/server.js";
import { everythingIn, listed, prsDirectory, prsUrl, pullRequest, push, refOf, switchedOn } from "./prs-world.js";

const program = fileURLToPath(new URL("../faults/program.js", import.meta.url));
const patienceMs = 120_000;
/** The event itself is planned with once, before the push is. */
const passedByTheEvent = new Set(["every repository is planned, nothing is committed"]);
const orderAt = (point: string): string => {
  const pass = passedByTheEvent.has(point) ? 2 : 1;
  return JSON.stringify({ type: "strike", point, pass, target: "server", signal: "SIGKILL" } satisfies Order);
};

/** Its clone tag names the port of the first server: the same domain is kept for the next. */
const settingsFor = (domain: string) => ({ ...switchedOn, NGIT_DOMAIN: domain });
const domain = "127.0.0.1:7";

const wish = (signer: Person, identifier: string) => ({
  clone: `http://${domain}/prs/${signer.npub}/${identifier}.git`,
});

/** The announcement names the lasting domain as well. */
async function host(story: Story, owner: Person, identifier: string): Promise<void> {
  await story.accepted(
    owner.sign(30617, [
      ["d", identifier],
      ["clone", `http://${domain}/${owner.npub}/${identifier}.git`],
      ["relays", `ws://${domain}`],
    ]),
  );
  const work = await story.workingCopy();
  const tip = await work.commit(`one of ${identifier}`);
  await story.state(owner, identifier, { "refs/heads/main": tip });
  await work.must("push", "-q", story.url(owner, identifier), "main");
}

describe("restarts", () => {
  it("entries and placeholders go on waiting; leftovers and orphans are removed", async () => {
    const folder = await newFolder();
    const [owner, contributor, other] = [new Person(), new Person(), new Person()];
    const options = { backend: "lmdb", folder, settings: settingsFor(domain) } as const;
    try {
      let story = await Story.on(await startInProcess(options));
      const work = await story.workingCopy();
      const tip = await work.commit("one");
      const sign = (signer: Person, identifier: string) =>
        pullRequest(story, signer, owner, identifier, tip, wish(signer, identifier));
      const waiting = await story.accepted(sign(contributor, "waits"));
      const late = sign(contributor, "late");
      assert.equal((await push(work, prsUrl(story, contributor, "late"), late)).code, 0);
      const served = await story.accepted(sign(contributor, "served"));
      assert.equal((await push(work, prsUrl(story, contributor, "served"), served)).code, 0);
      await story.relay.close();
      await story.server.stop();

      // What a crash or somebody else may leave: an empty one, a ref and data that no event and no row speaks of.
      const empty = prsDirectory(story, other, "empty");
      await runProgram("git", ["init", "-q", "--bare", empty]);
      const orphan = prsDirectory(story, other, "orphan");
      await runProgram("git", ["clone", "-q", "--bare", work.folder, orphan]);
      await runProgram("git", ["-C", orphan, "update-ref", `refs/nostr/${"0".repeat(64)}`, tip]);
      await runProgram("git", ["-C", orphan, "update-ref", "-d", "refs/heads/main"]);
      const beside = prsDirectory(story, contributor, "served");
      await runProgram("git", ["-C", beside, "update-ref", `refs/nostr/${"1".repeat(64)}`, tip]);
      await mkdir(join(beside, "unclaimed", "2".repeat(64), "pack"), { recursive: true });

      story = await Story.on(await startInProcess(options));
      assert.ok(!existsSync(empty) && !existsSync(orphan));
      assert.ok(!existsSync(join(story.server.gitPath, "prs", other.pubkey)));
      assert.ok(!existsSync(join(beside, "unclaimed", "2".repeat(64))));
      assert.deepEqual(await listed(prsUrl(story, contributor, "served")), { [refOf(served)]: tip });
      assert.ok(await story.isServed(served));
      await story.accepted(late);
      assert.ok(await story.isServed(late), "the data pushed before the restart");
      assert.equal((await push(work, prsUrl(story, contributor, "waits"), waiting)).code, 0);
      assert.ok(await story.isServed(waiting));
      await story.relay.close();
      await story.server.stop();

      // Switched off and on again: nothing is served, nothing is lost.
      const off = await Story.on(await startInProcess({ ...options, settings: { NGIT_DOMAIN: domain } }));
      assert.equal((await fetch(prsUrl(off, contributor, "served"))).status, 404);
      await off.relay.close();
      await off.server.stop();
      story = await Story.on(await startInProcess(options));
      assert.deepEqual(await listed(prsUrl(story, contributor, "served")), { [refOf(served)]: tip });
      await story.relay.close();
      await story.server.stop();
    } finally {
      await removeFolder(folder);
    }
  });
});

const pointsOfAll = [
  "a quarantine is open",
  "a push has its locks, its packs are in quarantine",
  "the packs are in place, the refs are not",
  "every repository is planned, nothing is committed",
  "refs and events are committed, git's refs are not in line",
  "git's refs are in line, they are not synced",
  "a push is written, what follows is not done",
  "everything is released, the report is not sent",
];
const chosen = pointsOfAll.filter((point) => isEveryFault || point === "the packs are in place, the refs are not");

describe("kill -9 in the middle of a push under /prs/", () => {
  for (const point of chosen) {
    it(`when ${point}`, async () => {
      const folder = await newFolder();
      const options = { backend: "lmdb", folder, settings: settingsFor(domain) } as const;
      try {
        const killed = await startChild({ ...options, program, args: [orderAt(point)] });
        const scene = await pushUntilKilled(killed);
        const server = await startInProcess(options);
        await checkAfter(await Story.on(server), scene);
        await server.stop();
      } finally {
        await removeFolder(folder);
      }
    });
  }

  it("when data came for an event nobody knows: it is there or gone, with its row, and can be pushed again", async () => {
    const folder = await newFolder();
    const options = { backend: "lmdb", folder, settings: settingsFor(domain) } as const;
    try {
      const killed = await startChild({
        ...options,
        program,
        args: [orderAt("a push is written, what follows is not done")],
      });
      const story = await Story.on(killed);
      const [owner, contributor] = [new Person(), new Person()];
      const work = await story.workingCopy();
      const tip = await work.commit("unknown");
      const event = pullRequest(story, contributor, owner, "gitfirst", tip, wish(contributor, "gitfirst"));
      await arm(killed);
      assert.notEqual((await push(work, prsUrl(story, contributor, "gitfirst"), event)).code, 0);
      await killed.ended;
      const again = await Story.begin(options);
      // Its row was written before anything was said: so the data is there, and only the data.
      assert.ok(leftovers(again).every((name) => name.includes(`/unclaimed/${event.id}`)));
      assert.equal((await push(work, prsUrl(again, contributor, "gitfirst"), event)).code, 0);
      await again.accepted(event);
      assert.ok(await again.isServed(event));
      assert.deepEqual(leftovers(again), []);
      await again.relay.close();
      await again.server.stop();
    } finally {
      await removeFolder(folder);
    }
  });
});

interface Scene {
  readonly owner: Person;
  readonly contributor: Person;
  readonly work: WorkingCopy;
  readonly tip: string;
  readonly event: SignedEvent;
  readonly acknowledged: boolean;
}

async function arm(server: ChildServer): Promise<void> {
  server.child.kill("SIGUSR2");
  assert.ok(await until(() => server.log().includes(armedText), patienceMs));
}

async function pushUntilKilled(server: ChildServer): Promise<Scene> {
  const story = await Story.on(server);
  const [owner, contributor] = [new Person(), new Person()];
  await host(story, owner, "safe");
  const work = await story.workingCopy();
  const tip = await work.commit("kept");
  await arm(server);
  const event = pullRequest(story, contributor, owner, "safe", tip, wish(contributor, "safe"));
  await story.accepted(event);
  const { code } = await push(work, prsUrl(story, contributor, "safe"), event);
  await server.ended;
  return { owner, contributor, work, tip, event, acknowledged: code === 0 };
}

/** Names that only something half done has. */
const leftovers = ({ server }: Story): string[] =>
  everythingIn(server).filter((name) => /(?:^|\/)(?:tmp_|\.holdfast-|unclaimed\/.)|\.lock$/.test(name));

async function checkAfter(story: Story, { owner, contributor, work, tip, event, acknowledged }: Scene): Promise<void> {
  const url = prsUrl(story, contributor, "safe");
  const held = await listed(url);
  if (acknowledged) assert.ok(await story.isServed(event));
  assert.equal(await story.isServed(event), refOf(event) in held, "events and refs agree");
  assert.deepEqual(leftovers(story), []);
  assert.equal((await push(work, url, event)).code, 0);
  assert.ok(await story.isServed(event));
  assert.deepEqual(await listed(url), { [refOf(event)]: tip });
  assert.equal((await story.advertised(owner, "safe"))[refOf(event)], tip, "and in the mirror");
  await story.relay.close();
}
