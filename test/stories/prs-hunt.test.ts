// A pull request that only GRASP-06 lets in is hunted at its clone URLs and lands in its signer's /prs/ repository.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { underPrs } from "../../src/catalogue/repositories.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { until } from "../harness/hunt-house.js";
import { huntWorld } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("prs hunt owner");
const contributor = keyOf("prs hunt contributor");
const patienceMs = 120_000;
const environment = { NGIT_GRASP06_ENABLE: "true" };

test("a synced pull request's tip is fetched into /prs/, mirrored when its repository comes, and in vain leaves nothing", async (context) => {
  const { house, work, remote } = await huntWorld(context, { environment });
  const place = underPrs(house.name(contributor, "demo"));
  const ours = `http://${house.domain}/prs/${npubOf(contributor.pubkey)}/demo.git`;
  const target = house.name(owner, "demo");

  const lost = await house.pullRequest(contributor, target, "1".repeat(40), [ours, remote.url("nothing")]);
  await until("the server was asked", () => remote.connectionTimesMs.length > 0, patienceMs);
  await until("the fetch is over", async () => (await house.leftovers(place)).length === 0, patienceMs);
  await until("nothing is left", () => !existsSync(house.repository(place).directory), patienceMs);
  assert.equal(await house.isServed(lost), false);

  const tip = await work.commitFile("a", "one");
  await remote.publish("fork", work.path, { "refs/heads/topic": tip });
  const event = await house.pullRequest(contributor, target, tip, [ours, remote.url("fork")]);
  await until("the pull request is served", () => house.isServed(event), patienceMs);
  assert.deepEqual(await house.refs(place), { [`refs/nostr/${event.id}`]: tip });
  assert.deepEqual(
    house.released.map(({ kind, via }) => `${kind} ${via}`),
    ["pull-request hunt"],
  );

  await remote.publish("demo", work.path, { "refs/heads/main": tip });
  await house.announce(owner, "demo", [remote.url("demo")]);
  const state = await house.state(owner, "demo", { "refs/heads/main": tip });
  await until("the repository is served", () => house.isServed(state), patienceMs);
  await until(
    "it has the pull request",
    async () => `refs/nostr/${event.id}` in (await house.refs(target)),
    patienceMs,
  );
  assert.deepEqual(house.faults, []);
});

test("what waited before a start is hunted after it", async (context) => {
  const { house: first, again, work, remote } = await huntWorld(context, { environment });
  const tip = await work.commitFile("a", "one");
  const ours = `http://${first.domain}/prs/${npubOf(contributor.pubkey)}/again.git`;
  const target = first.name(owner, "again");
  const event = await first.pullRequest(contributor, target, tip, [ours, remote.url("fork")]);
  await first.shut();
  await remote.publish("fork", work.path, { "refs/heads/topic": tip });
  const house = await again();
  await until("the pull request is served", () => house.isServed(event), patienceMs);
  assert.deepEqual(await house.refs(underPrs(house.name(contributor, "again"))), { [`refs/nostr/${event.id}`]: tip });
  assert.deepEqual(house.faults, []);
});

test("objects lost under /prs/ are found by the daily check and hunted again", async (context) => {
  const { house: first, again, work, remote } = await huntWorld(context, { environment });
  const tip = await work.commitFile("a", "one");
  await remote.publish("fork", work.path, { "refs/heads/topic": tip });
  const place = underPrs(first.name(contributor, "lost"));
  const ours = `http://${first.domain}/prs/${npubOf(contributor.pubkey)}/lost.git`;
  const event = await first.pullRequest(contributor, first.name(owner, "lost"), tip, [ours, remote.url("fork")]);
  await until("the pull request is served", () => first.isServed(event), patienceMs);
  await first.shut();
  const packs = join(first.repository(place).directory, "objects", "pack");
  for (const file of await readdir(packs)) await rm(join(packs, file));

  // The first check of the day comes a second after the start, and there is nothing else to check.
  const house = await again();
  const lacks = async () => (await house.repository(place).missingObjects([tip], { deep: true })).size;
  await until("its objects came back", async () => (await lacks()) === 0, patienceMs);
  await until("nothing is hunted any more", () => house.room.hunting.known().length === 0, patienceMs);
  assert.deepEqual((await house.room.repair.check(place))?.found, { missing: [], pullRequests: [] });
  assert.deepEqual(await house.refs(place), { [`refs/nostr/${event.id}`]: tip });
  assert.deepEqual(house.faults, []);
});
