import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { isRefName, maxRefNameBytes } from "./ids.js";

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
