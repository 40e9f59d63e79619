// What is hunted counts against the same quotas as what is pushed (git-http.md, "Budgets"): who cannot push any more must
// not be able to have it fetched instead.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { type TestContext, test } from "node:test";
import { until } from "../harness/hunt-house.js";
import { huntWorld, impatient } from "../harness/hunt-world.js";
import { keyOf } from "../harness/relay-events.js";

const owner = keyOf("thrifty owner");
const stranger = keyOf("generous stranger");
const other = keyOf("another stranger");
const withinMs = 120_000;

async function world(context: TestContext, environment: Record<string, string>) {
  const made = await huntWorld(context, { hunt: impatient, environment });
  const refusals = (): number =>
    made.house.logged.filter(({ fields }) => JSON.stringify(fields ?? {}).includes('"code":"quota-full"')).length;
  return { ...made, refusals, isRefused: () => refusals() > 0 };
}

for (const [whose, setting] of [
  ["its owner's share", "NGIT_NPUB_MAX_BYTES"],
  ["what all repositories may have", "NGIT_INSTANCE_MAX_BYTES"],
] as const) {
  test(`a repository beyond ${whose} is not fetched, and is when there is room`, async (context) => {
    const { house, work, remote, refusals } = await world(context, { [setting]: "400KiB" });
    const small = await work.commitFile("one", randomBytes(300_000));
    await remote.publish("first", work.path, { "refs/heads/main": small });
    const large = await work.commitFile("two", randomBytes(300_000));
    await remote.publish("second", work.path, { "refs/heads/main": large });

    await house.announce(owner, "first", [remote.url("first")]);
    const first = await house.state(owner, "first", { "refs/heads/main": small });
    await until("the first is served", () => house.isServed(first), withinMs);
    await house.announce(owner, "second", [remote.url("second")]);
    const second = await house.state(owner, "second", { "refs/heads/main": large });
    await until("the second is over the quota, again and again", () => refusals() >= 4, withinMs);
    assert.deepEqual(await house.packs(house.name(owner, "second")), []);
    const downloads = remote.requests.filter(({ path, command }) => path.includes("second") && command === "fetch");
    assert.equal(downloads.length, 1, "what did not fit is not downloaded again into the same room");

    house.reload({ [setting]: "10MiB" });
    await until("the second is served", () => house.isServed(second), withinMs);
    assert.deepEqual(house.faults, []);
  });
}

for (const [whose, setting] of [
  ["its author's share", "NGIT_PR_AUTHOR_MAX_BYTES"],
  ["what pull requests may have there", "NGIT_PR_REPOSITORY_MAX_BYTES"],
] as const) {
  test(`a pull request beyond ${whose} is not fetched`, async (context) => {
    const { house, work, remote, isRefused } = await world(context, { [setting]: "400KiB" });
    const main = await work.commit("main");
    const one = await work.commitFile("one", randomBytes(300_000));
    const two = await work.commitFile("two", randomBytes(300_000));
    await remote.publish("demo", work.path, { "refs/heads/main": main });
    await remote.publish("fork", work.path, { "refs/heads/one": one, "refs/heads/two": two });
    await house.announce(owner, "demo", [remote.url("demo")]);
    const state = await house.state(owner, "demo", { "refs/heads/main": main });
    await until("the repository is served", () => house.isServed(state), withinMs);

    const name = house.name(owner, "demo");
    const first = await house.pullRequest(stranger, name, one, [remote.url("fork")]);
    await until("the first pull request is served", () => house.isServed(first), withinMs);
    const second = await house.pullRequest(stranger, name, two, [remote.url("fork")]);
    await until("the second is over the quota", isRefused, withinMs);
    assert.equal(await house.isServed(second), false);

    if (setting === "NGIT_PR_AUTHOR_MAX_BYTES") {
      const others = await house.pullRequest(other, name, two, [remote.url("fork")]);
      await until("another author's is served", () => house.isServed(others), withinMs);
    } else house.reload({ [setting]: "10MiB" });
    await until("the second is served, its data is here or fits", () => house.isServed(second), withinMs);
    assert.deepEqual(house.faults, []);
  });
}
