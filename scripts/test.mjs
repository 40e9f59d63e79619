// Runs the compiled tests with Node's own runner: some files in processes of their own, the others in groups.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { calledWrongly } from "./program.mjs";
import { runTests } from "./run-tests.mjs";
import { groupsOf, programsOf } from "./test-groups.mjs";

const usage = `npm test                      everything a fresh machine can run
npm test -- store relay       only files whose path contains one of these words
npm test -- --json            one JSON object instead of a report
npm test -- --times           what each process cost in seconds of processor time, at the end, on stderr
npm test -- --test-name-pattern=threat    flags that begin with --test- go to Node's runner`;

const root = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2);
if (words.includes("--help") || words.includes("-h")) {
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}
const wanted = words.filter((word) => !word.startsWith("-"));
const json = words.includes("--json");
const isTimed = words.includes("--times");
const flags = words.filter((word) => word.startsWith("-") && word !== "--json" && word !== "--times");
const unknown = flags.find((flag) => !flag.startsWith("--test-"));
if (unknown !== undefined) calledWrongly(`Unknown option '${unknown}'`);
if ((json || isTimed) && flags.length > 0) {
  calledWrongly("--json and --times do not go together with flags of Node's runner");
}

/**
 * Each of these has a process of its own, the longest first: it measures its process, or starts servers as processes and
 * would gain nothing from neighbours that import the same rooms.
 */
const alone = [
  "simulate/simulate",
  "test/threats/linear-time",
  "test/threats/relay-peers",
  "test/threats/git-remotes",
  "test/threats/git-places",
  "test/threats/relay-sockets",
  "test/stories/housekeeping",
  "test/faults/harness",
  "test/threats/git-bombs",
  "test/threats/git-floods",
  "test/threats/relay-questions",
  "test/threats/git-authority",
  "test/cli/run",
  "test/threats/relay-budgets",
  "test/threats/git-disk",
  "test/faults/kill",
  "test/faults/orphans",
  "test/threats/relay-events",
  "test/threats/git-commands",
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

const place = (path) => alone.indexOf(relative(join(root, "dist"), path).slice(0, -".test.js".length));

// "threats-git" finds test/threats/git-….
const has = (path, word) => path.includes(word) || path.replaceAll("/", "-").includes(word);

const files = ["simulate", "src", "test"]
  .flatMap((folder) => testsIn(join(root, "dist", folder)))
  .filter(isCurrent)
  .filter((path) => wanted.length === 0 || wanted.some((word) => has(relative(root, path), word)))
  .sort();
if (files.length === 0) calledWrongly("No test file matches");

// Many of them wait, for timers and for git, more than they work.
const concurrency = 3 * availableParallelism();
/**
 * Files in a process; fewer when that leaves a core without work. Starting one and importing the server costs a second of
 * processor time. The longest processes begin first, so that the last to end are short.
 */
const most = { test: 9, simulate: 2, src: 40 };
const groupsIn = (folder) => {
  const short = files.filter((path) => place(path) < 0 && path.startsWith(join(root, "dist", folder)));
  return groupsOf(short, Math.min(most[folder], Math.ceil(short.length / concurrency)));
};
const single = files.filter((path) => place(path) >= 0).sort((one, other) => place(one) - place(other));
const longerThanGroups = single.filter((path) => place(path) < 2);
const programs = programsOf(root, [
  ...longerThanGroups.map((path) => [path]),
  ...groupsIn("test"),
  ...single.slice(longerThanGroups.length).map((path) => [path]),
  ...groupsIn("simulate"),
  ...groupsIn("src"),
]);

/**
 * Tests write and sync thousands of small files, which costs a quarter of their processor time on a disk. Undefined when
 * there is no file system in memory with enough room, or when programs cannot be run there.
 */
function folderInMemory() {
  const memory = "/dev/shm";
  const leastBytes = 4 * 2 ** 30;
  let folder;
  try {
    const { bavail, bsize } = statfsSync(memory);
    if (bavail * bsize < leastBytes) return undefined;
    folder = mkdtempSync(join(memory, "holdfast-tests-"));
  } catch {
    return undefined;
  }
  process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const program = join(folder, "program");
  writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
  return spawnSync(program).status === 0 ? folder : undefined;
}

process.chdir(root);
process.env.NODE_OPTIONS = "";
if (process.env.TMPDIR === undefined) {
  const folder = folderInMemory();
  if (folder !== undefined) process.env.TMPDIR = folder;
}
if (flags.length > 0) {
  const args = ["--test", "--enable-source-maps", `--test-concurrency=${concurrency}`, ...flags, ...programs];
  process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1);
}
runTests({ files: programs, fileCount: files.length, concurrency, json, isTimed });
