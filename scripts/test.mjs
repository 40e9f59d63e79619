// Runs the compiled tests with Node's own runner: the longest files in processes of their own, the others in groups.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { calledWrongly } from "./program.mjs";
import { runTests } from "./run-tests.mjs";
import { groupsOf, programsOf } from "./test-groups.mjs";

const usage = `npm test                      everything a fresh machine can run
npm test -- store relay       only files whose path contains one of these words
npm test -- --json            one JSON object instead of a report
npm test -- --test-name-pattern=threat    flags that begin with --test- go to Node's runner`;

const root = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2);
if (words.includes("--help") || words.includes("-h")) {
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}
const wanted = words.filter((word) => !word.startsWith("-"));
const json = words.includes("--json");
const flags = words.filter((word) => word.startsWith("-") && word !== "--json");
const unknown = flags.find((flag) => !flag.startsWith("--test-"));
if (unknown !== undefined) calledWrongly(`Unknown option '${unknown}'`);
if (json && flags.length > 0) calledWrongly("--json and flags of Node's runner do not go together");
const folders = ["simulate", "src", "test"];

/** Each of these has a process of its own, and the longest begin first, so that the last to end are short. */
const longest = [
  "faults/harness",
  "threats/git-floods",
  "stories/grasp-invariant",
  "stories/backup",
  "threats/relay-sockets",
  "threats/relay-peers",
  "stories/archive-modes",
  "threats/git-remotes",
  "threats/git-bombs",
  "threats/git-authority",
  "faults/kill",
  "stories/archive-life",
  "stories/housekeeping",
  "hunt/stories",
  "hunt/many",
  "stories/import",
  "threats/git-places",
  "sync/events",
  "threats/relay-questions",
  "faults/orphans",
  "threats/relay-events",
  "threats/relay-budgets",
  "threats/linear-time",
  "threats/git-disk",
  "stories/admin-pages",
  "threats/git-commands",
  "stories/prs-restart",
  "hunt/hostile",
  "cli/operator-offline",
  "cli/run",
  "cli/every-verb",
  "docs/moving",
  "docs/walkthroughs",
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

const place = (path) => longest.indexOf(relative(join(root, "dist", "test"), path).slice(0, -".test.js".length));

// "threats-git" finds test/threats/git-….
const has = (path, word) => path.includes(word) || path.replaceAll("/", "-").includes(word);

const files = folders
  .flatMap((folder) => testsIn(join(root, "dist", folder)))
  .filter(isCurrent)
  .filter((path) => wanted.length === 0 || wanted.some((word) => has(relative(root, path), word)))
  .sort();
if (files.length === 0) calledWrongly("No test file matches");

// Many of them wait, for timers and for git, more than they work.
const concurrency = 2 * availableParallelism();
/** Files in a process; fewer when that leaves a core without work. */
const most = { simulate: 1, src: 30, test: 3 };
const groups = folders.flatMap((folder) => {
  const short = files.filter((path) => place(path) < 0 && path.startsWith(join(root, "dist", folder)));
  return groupsOf(short, Math.min(most[folder], Math.ceil(short.length / concurrency)));
});
const alone = files.filter((path) => place(path) >= 0).sort((one, other) => place(one) - place(other));
const programs = [...alone, ...programsOf(root, groups)];

process.chdir(root);
process.env.NODE_OPTIONS = "";
if (flags.length > 0) {
  const args = ["--test", "--enable-source-maps", `--test-concurrency=${concurrency}`, ...flags, ...programs];
  process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1);
}
runTests({ files: programs, fileCount: files.length, concurrency, json });
