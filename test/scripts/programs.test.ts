// What developers run, beside the server: each program explains itself, and what it does not know is said in a sentence.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, test } from "node:test";
import { cleanEnvironment, type Ended } from "../cli/run.js";

const programs = [
  "dist/test/faults/run.js",
  "dist/bench/run.js",
  "dist/simulate/main.js",
  "scripts/fuzz.mjs",
  "scripts/test.mjs",
  "scripts/test-browser.mjs",
  "scripts/test-interop.mjs",
  "scripts/lint.mjs",
  "scripts/generate-docs.mjs",
  "scripts/setup.mjs",
];

function run(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { env: cleanEnvironment(), stdio: ["ignore", "pipe", "pipe"] });
    const read = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        read[name] += text;
      });
    }
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, ...read }));
  });
}

async function isRefused(sentence: RegExp, ...args: readonly string[]): Promise<void> {
  const ended = await run(...args);
  assert.equal(ended.code, 2, `${args.join(" ")}: ${ended.stdout}${ended.stderr}`);
  assert.match(ended.stderr, sentence);
  assert.equal(ended.stderr.trim().split("\n").length, 1, ended.stderr);
}

describe("developers' programs", { timeout: 900_000 }, () => {
  test("explain themselves, and end with 2 and one sentence when they are called wrongly", async () => {
    for (const program of programs) {
      const { code, stdout, stderr } = await run(program, "--help");
      assert.deepEqual([code, stderr], [0, ""], program);
      assert.match(stdout, /^(npm|node) .* {2}/, program);
      if (program !== "scripts/setup.mjs") assert.match(stdout, /--json/, program);
      await isRefused(/Unknown option '--nonsense'/, program, "--nonsense");
    }
  });

  test("refuse words and numbers they do not understand before they begin", async () => {
    await isRefused(/--rounds must be a whole number from 1/, "dist/test/faults/run.js", "--rounds", "many");
    await isRefused(/No fault is called 'flood'/, "dist/test/faults/run.js", "--only", "flood");
    await isRefused(/--seeds must be a whole number from 1/, "dist/simulate/main.js", "--seeds", "0");
    await isRefused(/No such mistake; known: /, "dist/simulate/main.js", "--break", "toString");
    await isRefused(/No benchmark speed; there are: ingest/, "dist/bench/run.js", "speed");
    await isRefused(/No test file matches/, "scripts/test.mjs", "no-such-test");
  });

  test("answer as JSON", async () => {
    const simulated = JSON.parse((await run("dist/simulate/main.js", "--json")).stdout) as {
      ok: boolean;
      results: object[];
    };
    assert.deepEqual([simulated.ok, simulated.results.length], [true, 1]);
    const tested = JSON.parse((await run("scripts/test.mjs", "config/secret-key", "--json")).stdout) as Record<
      string,
      unknown
    >;
    assert.deepEqual([tested.ok, tested.files, tested.failed, tested.failures], [true, 1, 0, []]);
    assert.ok(Number(tested.passed) > 0);
  });
});
