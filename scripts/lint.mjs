// Formatting and lint (Biome), import directions (dependency-cruiser), unused code (knip).
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";

const { values } = argumentsOf(
  `npm run lint [-- --json]      types, format and style, import directions, unused code; exit 1 when something is found`,
  { json: { type: "boolean", default: false } },
);
const root = fileURLToPath(new URL("..", import.meta.url));
const bin = (name) => join(root, "node_modules", ".bin", name);
// What the tools find is not part of a JSON answer.
const shown = ["ignore", values.json ? 2 : 1, 2];
const run = (name, args, stdio = shown) => spawnSync(bin(name), args, { cwd: root, stdio, encoding: "utf8" });
const steps = {};

function step(title, ok) {
  steps[title] = ok;
  if (!values.json) process.stdout.write(`lint: ${title}: ${ok ? "ok" : "FAILED"}\n`);
  if (!ok) process.exitCode = 1;
}

const folders = ["src", "test", "bench", "simulate"].filter((folder) => existsSync(join(root, folder)));
const cruise = ["--config", ".dependency-cruiser.cjs", "--output-type", "err", ...folders];

step("types", run("tsc", ["-p", "tsconfig.json", "--noEmit", "--incremental", "false"]).status === 0);
step("format and style", run("biome", ["check", "--error-on-warnings", "."]).status === 0);
step("import directions", run("depcruise", cruise).status === 0);

// A checker that sees no modules reports no errors: prove that this one still bites.
const planted = join(root, "src", "base", "planted");
try {
  mkdirSync(planted, { recursive: true });
  writeFileSync(join(planted, "upwards.ts"), 'import "../../main.js";\nimport "../../store/port.js";\n');
  const result = run("depcruise", cruise, "pipe");
  step("a planted upward import is reported", result.status !== 0 && /base-imports-downwards-only/.test(result.stdout));
} finally {
  rmSync(planted, { recursive: true, force: true });
}

step("unused code", run("knip", []).status === 0);
if (values.json) process.stdout.write(`${JSON.stringify({ ok: process.exitCode !== 1, steps })}\n`);
