import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { done } from "./context.js";
import { BanQuestions, type Run } from "./nip86.js";

test("a ban that takes something away is asked once for each key and target, for ten minutes", async () => {
  const clock = new ManualClock();
  const questions = new BanQuestions(clock);
  let events = 3;
  const preview = {
    type: "key",
    isBanned: false,
    waiting: 0,
    repositories: [],
    moreRepositories: 0,
    restorable: 0,
    graceDays: 90,
  };
  const run = (async (_: string, { target }: { target: string }) =>
    done({ ...preview, target, events })) as unknown as Run;
  const ask = async (who: string, ...params: unknown[]): Promise<boolean> =>
    (await questions.ask(run, who, "key", params)) !== undefined;
  assert.equal(await ask("alice", "x", "spam"), true);
  assert.equal(await ask("bob", "x", "spam"), true, "another key has not seen it");
  assert.equal(await ask("alice", "y", "spam"), true, "another target");
  assert.equal(await ask("alice", "x", "spam"), false, "asked again: it is meant");
  assert.equal(await ask("alice", "x", "spam"), true, "the answer is used up");
  clock.advance(10 * 60_000 + 1);
  assert.equal(await ask("alice", "x", "spam"), true, "too late to be an answer");
  assert.equal(await ask("alice", "z", "spam", "yes"), false, "said at once");
  events = 0;
  assert.equal(await ask("alice", "w"), false, "nothing would go");
});
