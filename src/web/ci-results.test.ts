import assert from "node:assert/strict";
import { test } from "node:test";
import { keyOf, makeEvent, oid, startSeconds } from "../admission/testing/world.js";
import { type CiRun, ciRunOf } from "../nostr/ci.js";
import { kinds, type Tag } from "../nostr/event.js";
import { NaiveStore } from "../store/testing/naive-store.js";
import { ciMarks, ciResultsOf } from "./ci-results.js";

const commit = oid("commit");
const repository = `30617:${keyOf("owner")}:x`;
const about: Tag[] = [
  ["a", repository],
  ["c", commit],
  ["w", ".ngit/workflows/test.yml", "0".repeat(64)],
  ["o", "push"],
  ["r", "refs/heads/main"],
];
const result = (run: string, conclusion: string, at = 0, by = "coordinator", tags = about) =>
  makeEvent(keyOf(by), kinds.ciResult, [...tags, ["r", run], ["conclusion", conclusion]], startSeconds + at);
const progress = (run: string, status: string, at = 0, by = "coordinator") =>
  makeEvent(keyOf(by), kinds.ciProgress, [...about, ["d", run], ["status", status]], startSeconds + at);

test("a run is read from a result and from a marker of its progress; what is neither is no run", () => {
  const run = ciRunOf(result("run-1", "success")) as CiRun;
  assert.deepEqual(
    [run.run, run.status, run.workflow, run.commits, run.coordinator],
    ["run-1", "success", ".ngit/workflows/test.yml", [commit], keyOf("coordinator")],
  );
  assert.equal(ciRunOf(progress("run-2", "in_progress"))?.status, "in progress");
  assert.equal(ciRunOf(progress("run-2", "queued"))?.run, "run-2");
  const odd = [
    result("run-1", "splendid"),
    progress("run-1", "concluded"),
    progress("run-1", "asleep"),
    result("refs/heads/x", "success"),
    result("run-1", "success", 0, "coordinator", about.slice(0, 2)),
    result("run-1", "success", 0, "coordinator", [["c", "--option"], ...about.slice(2)]),
    makeEvent(keyOf("coordinator"), kinds.ciJob, [...about, ["conclusion", "success"]]),
  ];
  for (const event of odd) assert.equal(ciRunOf(event), undefined, JSON.stringify(event.tags));
});

test("of each run its end counts, of each workflow the newest run, and who was asked by a maintainer comes first", async () => {
  const store = new NaiveStore();
  const pullRequest = makeEvent(keyOf("bob"), kinds.pullRequest, [["a", repository]]);
  const forPullRequest: Tag[] = [...about.slice(0, 3), ["o", "pull_request"], ["E", pullRequest.id]];
  const control = (kind: number, by: string, coordinator: string, at: number) =>
    makeEvent(
      keyOf(by),
      kind,
      [
        ["a", repository],
        ["p", keyOf(coordinator)],
      ],
      startSeconds + at,
    );
  const events = [
    result("1", "failure", 10),
    result("2", "success", 20),
    progress("2", "in_progress", 30),
    result("9", "success", 40, "stranger"),
    progress("5", "queued", 50, "stopped"),
    result("7", "timed_out", 5, "coordinator", forPullRequest),
    result("8", "success", 60, "coordinator", [["a", `30617:${keyOf("eve")}:x`], ...about.slice(1)]),
    control(kinds.ciRequest, "owner", "coordinator", 0),
    control(kinds.ciRequest, "owner", "stopped", 0),
    control(kinds.ciStop, "owner", "stopped", 1),
    control(kinds.ciRequest, "eve", "stranger", 0),
  ];
  for (const event of events) await store.put(event);
  const { byCommit, byPullRequest } = await ciResultsOf(store, {
    repositories: [repository],
    commits: [commit, oid("another")],
    pullRequests: [pullRequest.id],
    maintainers: new Set([keyOf("owner")]),
  });
  const told = (runs: readonly { run: string; status: string; isAskedFor: boolean }[] = []) =>
    runs.map(({ run, status, isAskedFor }) => `${run} ${status} ${isAskedFor}`);
  assert.deepEqual(told(byCommit.get(commit)), ["2 success true", "5 queued false", "9 success false"]);
  assert.deepEqual(told(byPullRequest.get(pullRequest.id)), ["7 timed_out true"]);
  assert.equal(byCommit.has(oid("another")), false);

  const marks = String(ciMarks(byCommit.get(commit)));
  assert.match(marks, /class="tag good">.*CI <bdi>test\.yml<\/bdi>: success</);
  assert.match(marks, /CI <bdi>test\.yml<\/bdi>: success \(not asked for\)/);
  assert.equal(marks.match(/tag good/g)?.length, 1, "a stranger's success has no colour");
  assert.equal(ciMarks(undefined), undefined);
});

test("markup in a workflow's name is text", () => {
  const run = ciRunOf(
    result("1", "success", 0, "c", [
      ["c", commit],
      ["w", '"><script>x</script>'],
    ]),
  ) as CiRun;
  const marks = String(ciMarks([{ ...run, isAskedFor: true }]));
  assert.doesNotMatch(marks, /<script>/);
});
