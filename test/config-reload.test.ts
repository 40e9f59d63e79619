// Limits that SIGHUP changes while the server runs: of events' times, and of the hunt.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Person } from "./harness/grasp-people.js";
import { Story } from "./harness/grasp-story.js";
import { HuntGitServer, WorkingClone } from "./harness/hunt-git-server.js";
import { newFolder, startChild, until } from "./harness/server.js";

const patienceMs = 30_000;

test("SIGHUP changes how far ahead events may be dated, and when the hunt looks", async (context) => {
  const folder = await newFolder();
  const file = join(folder, "holdfast.conf");
  await writeFile(file, "NGIT_MAX_FUTURE_SECS=60\nNGIT_GIT_HUNT_DIRECT_DELAY_MS=3600000\n");
  const server = await startChild({ folder, args: ["--config", file] });
  const story = await Story.on(server);
  const remote = await HuntGitServer.start();
  const clone = await WorkingClone.make();
  context.after(async () => {
    await story.end();
    await remote.close();
    await clone.remove();
  });
  const tip = await clone.commitFile("a", "one");
  const owner = new Person();
  const ahead = () => owner.sign(30_617, [["d", "x"]], "", Math.floor(Date.now() / 1_000) + 600);
  assert.match((await story.publish(ahead())).message, /in the future/);

  await writeFile(file, "NGIT_MAX_FUTURE_SECS=3600\nNGIT_GIT_HUNT_DIRECT_DELAY_MS=0\n");
  server.child.kill("SIGHUP");
  const isTaken = await until(async () => !/in the future/.test((await story.publish(ahead())).message), patienceMs);
  assert.ok(isTaken, server.log());
  await remote.publish("hunted", clone.path, { "refs/heads/main": tip });
  await story.announce(owner, "hunted", [["clone", remote.url("hunted")]]);
  await story.state(owner, "hunted", { "refs/heads/main": tip });
  const isHere = await until(
    async () => (await story.advertised(owner, "hunted"))["refs/heads/main"] === tip,
    patienceMs,
  );
  assert.ok(isHere, server.log());
});
