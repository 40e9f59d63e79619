// Runs the compiled tests with Node's own runner.
//   npm test                      everything a fresh machine can run
//   npm test -- store relay       only files whose path contains one of these words
//   npm test -- --test-name-pattern=threat    flags go to Node's runner
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join, relative } from "node:path";
import { run } from "node:test";
import { spec, tap } from "node:test/reporters";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"));
const flags = process.argv.slice(2).filter((word) => word.startsWith("-"));
const folders = ["test", "simulate", "src"];

/** The long ones begin first, so that the last to end are short. */
const longest = [
  "faults-harness",
  "faults-kill",
  "threats-relay-sockets",
  "threats-git-floods",
  "archive-life",
  "backup",
  "cli-operator-running",
  "threats-relay-peers",
  "grasp-invariant",
  "archive-modes",
  "prs-restart",
  "cli-operator-offline",
  "threats-git-places",
  "cli-verbs",
  "threats-git-authority",
  "store-kill",
  "threats-git-bombs",
  "threats-git-remotes",
  "threats-git-disk",
  "faults-orphans",
  "threats-relay-questions",
  "cli-every-verb",
  "admin-pages",
  "threats-relay-strangers",
  "docs-moving",
  "docs-walkthroughs",
];

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

const place = (path) => {
  const at = longest.indexOf(basename(path, ".test.js"));
  return at < 0 ? longest.length : at;
};

const files = folders
  .flatMap((folder) => testsIn(join(root, "dist", folder)))
  .filter(isCurrent)
  .filter((path) => wanted.length === 0 || wanted.some((word) => relative(root, path).includes(word)))
  .sort((one, other) => place(one) - place(other));
if (files.length === 0) {
  process.stderr.write("no test file matches\n");
  process.exit(1);
}

// Many of them wait, for timers and for git, more than they work.
const concurrency = Math.max(2, Math.ceil(availableParallelism() * 1.5));
process.chdir(root);
process.env.NODE_OPTIONS = "";
if (flags.length > 0) {
  const args = ["--test", "--enable-source-maps", `--test-concurrency=${concurrency}`, ...flags, ...files];
  process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1);
}
// Given to each file's process.
process.execArgv.push("--enable-source-maps");
run({ files, concurrency })
  .on("test:fail", ({ todo }) => {
    if (todo === undefined || todo === false) process.exitCode = 1;
  })
  .compose(process.stdout.isTTY ? new spec() : tap)
  .pipe(process.stdout);
