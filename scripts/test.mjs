// Runs the compiled tests with Node's own runner.
//   npm test                      everything a fresh machine can run
//   npm test -- store relay       only files whose path contains one of these words
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const flags = process.argv.slice(2).filter((word) => word.startsWith("-"));

function testsIn(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return testsIn(path);
    return entry.name.endsWith(".test.js") ? [path] : [];
  });
}

// A compiled test whose source is gone would test the past.
const isCurrent = (path) => existsSync(join(root, relative(join(root, "dist"), path).replace(/\.js$/, ".ts")));

const files = ["src", "test", "simulate"]
  .flatMap((folder) => testsIn(join(root, "dist", folder)))
  .filter(isCurrent)
  .filter((path) => wanted.length === 0 || wanted.some((word) => relative(root, path).includes(word)));
if (files.length === 0) {
  process.stderr.write("no test file matches\n");
  process.exit(1);
}
const result = spawnSync(
  process.execPath,
  ["--test", "--enable-source-maps", `--test-concurrency=${Math.max(2, availableParallelism())}`, ...flags, ...files],
  { cwd: root, stdio: "inherit", env: { ...process.env, NODE_OPTIONS: "" } },
);
process.exit(result.status ?? 1);
