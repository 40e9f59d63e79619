import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { announcementOf, isRefName, maxRefNameBytes, pullRequestOf, repositoriesTagged, stateOf } from "./nip34.js";
import { keyFrom, signedEvent } from "./testing/signed.js";

const alice = keyFrom("alice").pubkey;
const bob = keyFrom("bob").pubkey;
const oid = "1".repeat(40);
const announcement = (tags: string[][]) => announcementOf(signedEvent({ kind: 30_617, tags }))!;
const state = (tags: string[][]) => stateOf(signedEvent({ kind: 30_618, tags }))!;

test("an announcement gathers the values of several clone, relays and maintainers tags, in order", () => {
  const view = announcement([
    ["d", "repo"],
    ["name", "Repo"],
    ["description", "About"],
    ["clone", "https://a.example/x.git", "https://b.example/x.git"],
    ["relays", "wss://a.example"],
    ["web", "https://w.example"],
    ["clone", "https://c.example/x.git"],
    ["relays", "wss://b.example", "wss://c.example"],
    ["maintainers", alice, "nobody", alice.toUpperCase()],
    ["maintainers", bob, alice],
    ["r", oid],
    ["r", "2".repeat(40), "euc"],
    ["t", "git"],
    ["t", "nostr"],
  ]);
  assert.equal(view.owner, keyFrom("somebody").pubkey);
  assert.equal(view.identifier, "repo");
  assert.equal(view.name, "Repo");
  assert.equal(view.description, "About");
  assert.deepEqual(view.clone, ["https://a.example/x.git", "https://b.example/x.git", "https://c.example/x.git"]);
  assert.deepEqual(view.relays, ["wss://a.example", "wss://b.example", "wss://c.example"]);
  assert.deepEqual(view.web, ["https://w.example"]);
  assert.deepEqual(view.maintainers, [alice, bob]);
  assert.equal(view.earliestUniqueCommit, "2".repeat(40));
  assert.deepEqual(view.hashtags, ["git", "nostr"]);
});

test("an announcement without tags is a view of nothing, and other kinds are no announcement", () => {
  const view = announcement([]);
  assert.equal(view.identifier, "");
  assert.deepEqual([view.clone, view.relays, view.maintainers, view.earliestUniqueCommit], [[], [], [], undefined]);
  assert.equal(announcementOf(signedEvent({ kind: 30_618 })), undefined);
  assert.equal(stateOf(signedEvent({ kind: 30_617 })), undefined);
  assert.equal(pullRequestOf(signedEvent({ kind: 1617 })), undefined);
});

for (const [spelling, branch] of [
  ["ref: refs/heads/main", "refs/heads/main"],
  ["ref:refs/heads/a/b", "refs/heads/a/b"],
  ["refs/heads/main", "refs/heads/main"],
  [oid, undefined],
  ["ref: refs/tags/v1", undefined],
  ["main", undefined],
  ["", undefined],
] as const) {
  test(`HEAD spelled "${spelling}" names ${branch ?? "no branch"}`, () => {
    assert.equal(
      state([
        ["d", "x"],
        ["HEAD", spelling],
      ]).headBranch,
      branch,
    );
  });
}

test("a state lists branches and tags in order, with duplicates, without peeled entries and other refs", () => {
  const view = state([
    ["d", "repo"],
    ["refs/heads/main", oid],
    ["refs/tags/v1", "a"],
    ["refs/tags/v1^{}", "b"],
    ["refs/heads/main", "c"],
    ["refs/pull/1", oid],
    ["refs/nostr/x", oid],
    ["HEAD", "ref: refs/heads/main"],
    ["refs/heads/with-parents", oid, "d", "e"],
  ]);
  assert.equal(view.identifier, "repo");
  assert.deepEqual(view.refs, [
    { name: "refs/heads/main", value: oid },
    { name: "refs/tags/v1", value: "a" },
    { name: "refs/heads/main", value: "c" },
    { name: "refs/heads/with-parents", value: oid },
  ]);
});

test("a ref without a value is not read as a ref that is gone", () => {
  assert.deepEqual(state([["refs/heads/main"]]).refs, [{ name: "refs/heads/main", value: "" }]);
});

test("a state without refs is legal", () => {
  assert.deepEqual(state([["d", "x"]]).refs, []);
});

test("a pull request names its repositories once each, its tip and where it can be cloned", () => {
  const event = signedEvent({
    kind: 1618,
    tags: [
      ["a", `30617:${alice}:x`, "wss://hint.example"],
      ["a", `30617:${alice}:x`],
      ["a", `30617:${bob}:with:colon`],
      ["a", `30618:${bob}:state`],
      ["a", "nonsense"],
      ["c", oid],
      ["clone", "https://a.example/x.git", "https://b.example/x.git"],
      ["E", "f".repeat(64)],
    ],
  });
  const view = pullRequestOf(event)!;
  const repositories = [
    { kind: 30_617, pubkey: alice, identifier: "x" },
    { kind: 30_617, pubkey: bob, identifier: "with:colon" },
  ];
  assert.deepEqual(view.repositories, repositories);
  assert.deepEqual(repositoriesTagged(event), repositories);
  assert.equal(view.tip, oid);
  assert.deepEqual(view.clone, ["https://a.example/x.git", "https://b.example/x.git"]);
  assert.equal(view.updates, undefined);
});

test("an update names the pull request it updates, if it names one well", () => {
  const update = (tags: string[][]) => pullRequestOf(signedEvent({ kind: 1619, tags }))!;
  assert.equal(update([["E", "f".repeat(64)]]).updates, "f".repeat(64));
  assert.equal(update([["E", "F".repeat(64)]]).updates, undefined);
  assert.equal(update([]).tip, "");
});

/** What git itself says, many at a time: one shell, one `git check-ref-format` a name. */
function gitAccepts(names: readonly string[]): boolean[] {
  const script = 'for name in "$@"; do git check-ref-format "$name" && echo 1 || echo 0; done';
  const result = spawnSync("sh", ["-c", script, "sh", ...names], { encoding: "utf8" });
  assert.equal(result.status, 0, result.stderr);
  const answers = result.stdout.trim().split("\n");
  assert.equal(answers.length, names.length);
  return answers.map((answer) => answer === "1");
}

const odd = [
  "refs/heads/main",
  "refs/heads/a/b/c",
  "refs/heads/é",
  "refs/heads/日本",
  "refs/heads/@",
  "refs/heads/@x",
  "refs/heads/a@{b",
  "refs/heads/a@",
  "refs/heads/-option",
  "refs/heads/a..b",
  "refs/heads/a.b",
  "refs/heads/a.",
  "refs/heads/a./b",
  "refs/heads/.a",
  "refs/heads/a/.b",
  "refs/heads/a.lock",
  "refs/heads/a.lock/b",
  "refs/heads/a.lockx",
  "refs/heads/a.LOCK",
  "refs/heads/",
  "refs/heads//a",
  "refs/heads",
  "refs/",
  "refs/heads/a b",
  "refs/heads/a\tb",
  "refs/heads/a\x7f",
  "refs/heads/a\x01",
  "refs/heads/a~1",
  "refs/heads/a^{}",
  "refs/heads/a:b",
  "refs/heads/a?",
  "refs/heads/a*",
  "refs/heads/a[",
  "refs/heads/a]",
  "refs/heads/a\\b",
  "refs/heads/a\u0085",
  "refs/heads/a\u00a0",
  "refs/heads/{",
  "refs/heads/HEAD",
  "refs/tags/v1.0",
  "refs/x",
];

test("a ref name is what git check-ref-format accepts: chosen oddities", () => {
  const accepted = gitAccepts(odd);
  odd.forEach((name, index) => {
    assert.equal(isRefName(name), accepted[index], JSON.stringify(name));
  });
  assert.ok(accepted.includes(true) && accepted.includes(false));
});

test("a ref name is what git check-ref-format accepts: random names of dangerous parts", (context) => {
  const parts = fc.constantFrom(
    "a",
    "B",
    "/",
    ".",
    "..",
    ".lock",
    "@",
    "{",
    "@{",
    "-",
    "~",
    "^",
    ":",
    "?",
    "*",
    "[",
    "\\",
    " ",
    "\n",
    "é",
    "\u{1f980}",
  );
  const seed = Date.now() >>> 0;
  context.diagnostic(`seed ${seed}`);
  const names = fc
    .sample(fc.array(parts, { minLength: 1, maxLength: 5 }), { numRuns: 800, seed })
    .map((list) => `refs/${list.join("")}`);
  const accepted = gitAccepts(names);
  names.forEach((name, index) => {
    assert.equal(isRefName(name), accepted[index], `${JSON.stringify(name)}, seed ${seed}`);
  });
});

test("names outside refs/, with NUL, lone surrogates or over 255 bytes are refused whatever git would say", () => {
  for (const name of [
    "",
    "HEAD",
    "heads/main",
    "main",
    "/refs/heads/main",
    "Refs/heads/main",
    "refs/heads/a\0b",
    "refs/heads/\ud800",
  ]) {
    assert.equal(isRefName(name), false, JSON.stringify(name));
  }
  const prefix = "refs/heads/";
  assert.equal(isRefName(prefix + "a".repeat(maxRefNameBytes - prefix.length)), true);
  assert.equal(isRefName(prefix + "a".repeat(maxRefNameBytes - prefix.length + 1)), false);
  assert.equal(isRefName(prefix + "é".repeat(123)), false);
});
