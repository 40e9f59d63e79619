// Faults that no other test brings about, against the real server under mixed load: a few of them, one round of each
// with HOLDFAST_FAULTS=all (as continuous integration does), or of those whose story has a word in it. The long run:
// npm run faults -- --rounds 200

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Random } from "../../src/store/testing/random.js";
import {
  crashWorker,
  exhaustDescriptors,
  failStore,
  fillDisk,
  flipBytes,
  jumpClock,
  killAt,
  killGit,
  killLauncher,
  killServer,
  killWhileExpiring,
  rejectPromise,
  stallStore,
  stopGit,
} from "./faults.js";
import { verbPoint } from "./orders.js";
import { Rounds } from "./rounds.js";
import type { Fault } from "./scene.js";
import { World } from "./world.js";

const seed = Number(process.env.HOLDFAST_FAULT_SEED ?? Math.floor(Math.random() * 2 ** 31));

const stories: Readonly<Record<string, Fault>> = {
  "the server is killed at a random moment": killServer,
  "the launcher is killed": killLauncher,
  "git processes are killed": killGit,
  "the server is killed while it repacks": killAt(verbPoint("repack"), "server"),
  "the server is killed while it hunts": killAt(verbPoint("fetch"), "server"),
  "the server is killed while waiting events expire": killWhileExpiring,
  "git that writes refs is stopped (SIGSTOP)": stopGit("update-ref"),
  "the store stalls 200 ms at each commit": stallStore,
  "the store fails in the middle of a batch": failStore,
  "the disk of the repositories is full": fillDisk("git"),
  "the disk of the events is full": fillDisk("relay"),
  "the clock jumps an hour ahead and back": jumpClock(1),
  "the clock jumps an hour back and ahead": jumpClock(-1),
  "no file descriptor is left": exhaustDescriptors,
  "the threads that check signatures crash": crashWorker,
  "a byte of a pack is flipped": flipBytes,
  "a rejected promise nobody awaited ends the process with a flushed log": rejectPromise,
};

const quick: ReadonlySet<string> = new Set([
  "the server is killed at a random moment",
  "a rejected promise nobody awaited ends the process with a flushed log",
]);

describe(`the contract holds when (seed ${seed})`, () => {
  let world: World;
  let rounds: Rounds;
  before(async () => {
    world = await World.make(new Random(seed));
    rounds = new Rounds(world);
    await rounds.settle();
  });
  after(async () => {
    await rounds.end();
    await world.end();
  });

  const wanted = process.env.HOLDFAST_FAULTS;
  const isChosen = (story: string): boolean =>
    wanted === undefined ? quick.has(story) : wanted === "all" || story.includes(wanted);
  for (const [index, [story, fault]] of Object.entries(stories).entries()) {
    if (!isChosen(story)) continue;
    it(story, async (t) => {
      if (fault.needsVolumes && !world.hasVolumes) return t.skip("no small disk can be mounted here");
      const { violations, what, isDone } = await rounds.round(fault, index);
      t.diagnostic(`${what}${isDone ? "" : ": not reached"}`);
      assert.deepEqual(violations, []);
    });
  }
});
