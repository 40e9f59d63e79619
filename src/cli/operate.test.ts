import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { descriptionOf, operationNames } from "../operator/operations.js";
import type { Terminal } from "./abilities.js";
import { durationText, progressBar, progressLine } from "./progress.js";
import { cliPage, managementPage } from "./reference-pages.js";

function terminal(showsProgress: boolean): { terminal: Terminal; written: string[] } {
  const written: string[] = [];
  const lines = async function* (): AsyncGenerator<string> {};
  return {
    written,
    terminal: {
      out: async () => undefined,
      error: (text) => void written.push(text),
      showsProgress,
      columns: 60,
      lines,
    },
  };
}

test("a line shows part, count, speed and the time that remains, and fits the terminal", () => {
  const line = (standing: Parameters<typeof progressLine>[0], elapsedMs: number, columns = 80): string =>
    progressLine(standing, elapsedMs, columns);
  assert.equal(
    line({ label: "import", done: 50, total: 200 }, 1000),
    `import [${"#".repeat(10)}${".".repeat(30)}] 25 % 50/200 (50/s), 3 s left`,
  );
  assert.equal(
    line({ label: "copying", done: 3 * 2 ** 20, total: 2 ** 30, unit: "bytes" }, 1000, 60),
    "copying [......] 0 % 3 MiB/1 GiB (3 MiB/s), 5 min 41 s left",
  );
  assert.equal(line({ label: "import", done: 50, total: undefined }, 2000), "import 50 (25/s), 2 s");
  assert.doesNotMatch(line({ label: "x", done: 1, total: 9 }, 20), /left/, "too early to tell");
  assert.doesNotMatch(line({ label: "x", done: 0, total: 9 }, 9_000), /left/, "nothing to tell it from");
  for (const columns of [10, 30, 80, 200]) {
    for (const total of [3, undefined])
      assert.ok(line({ label: "x", done: 1, total }, 5_000, columns).length < columns);
  }
});

test("a time is told in the two largest units that matter", () => {
  const told = [0, 0.2, 59, 60, 61, 3_600, 3_661, 90_000].map(durationText);
  assert.deepEqual(told, ["0 s", "1 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "25 h"]);
});

test("the line is drawn at most ten times a second, for each phase anew, and taken away at the end", () => {
  const clock = new ManualClock();
  const { terminal: screen, written } = terminal(true);
  const bar = progressBar({ terminal: screen, clock });
  bar.done();
  assert.deepEqual(written, [], "nothing was drawn, nothing is taken away");
  for (let step = 0; step < 1000; step++) {
    bar.report(step, 1000, "one");
    clock.advance(1);
  }
  assert.equal(written.length, 10);
  bar.report(1, 2, "two");
  assert.equal(written.length, 11, "another phase is shown at once");
  bar.done();
  assert.equal(written.at(-1), "\r\x1b[K");
});

test("without a terminal nothing is drawn", () => {
  const { terminal: screen, written } = terminal(false);
  const bar = progressBar({ terminal: screen, clock: new ManualClock() });
  bar.report(10, 20, "x");
  bar.done();
  assert.deepEqual(written, []);
});

test("every verb of the table of operations is a command, and every address below /api is documented", async () => {
  const [commands, management] = [await cliPage(), managementPage()];
  for (const operation of operationNames) {
    const { verb, api } = descriptionOf(operation);
    if (verb !== undefined) assert.ok(commands.includes(`\n## holdfast ${verb}\n`), operation);
    if (api) assert.ok(management.includes(`\`/api/${api.word}${api.name === undefined ? "`" : "/<"}`), operation);
  }
});
