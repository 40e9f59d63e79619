import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../base/testing/manual-clock.js";
import { descriptionOf, operationNames } from "../operator/operations.js";
import type { Terminal } from "./abilities.js";
import { progressLine, startProgress } from "./operate.js";
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

test("a bar shows part, count and speed and fits the terminal", () => {
  assert.equal(
    progressLine("import", 50, 200, 1000, 60),
    `import [${"#".repeat(8)}${".".repeat(23)}] 25 % 50/200 (50/s)`,
  );
  assert.equal(progressLine("import", 50, undefined, 2000, 60), "import 50 (25/s)");
  for (const columns of [10, 30, 80, 200]) assert.ok(progressLine("x", 1, 3, 5, columns).length < columns);
});

test("the bar is drawn at most ten times a second and taken away at the end", () => {
  const clock = new ManualClock();
  const { terminal: screen, written } = terminal(true);
  const progress = startProgress(screen, clock, "x", 1000);
  for (let step = 0; step < 1000; step++) {
    progress.add(1);
    clock.advance(1);
  }
  progress.done();
  assert.equal(written.length, 11);
  assert.equal(written.at(-1), "\r\x1b[K");
});

test("without a terminal nothing is drawn", () => {
  const { terminal: screen, written } = terminal(false);
  const progress = startProgress(screen, new ManualClock(), "x", 10);
  progress.add(10);
  progress.done();
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
