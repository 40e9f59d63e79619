// npm run test:cluster — several machines as one, on a real PostgreSQL: the store's contract on three nodes, and what must
// happen when parts of a cluster fail. Each suite starts a PostgreSQL of its own in a folder of its own, on loopback.
// What cannot be installed is printed as not run, never as passed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";
import { runTests } from "./run-tests.mjs";

const { values, positionals } = argumentsOf(
  `npm run test:cluster [-- --json]              three nodes on a real PostgreSQL
                     [-- <word> …]            only suites whose name contains one of the words
                     [-- --install-only]      installs PostgreSQL and runs nothing; exit 1 when it could not be installed

Uses the newest PostgreSQL under /usr/lib/postgresql, or the programs in the folder POSTGRES_BIN. Where it or PgBouncer is
missing, root installs Debian's packages. PostgreSQL itself runs as the user postgres, or as the caller if that is not root.
The S3 server is versitygw: the program S3_SERVER, or built once by Go into ~/.cache/holdfast-cluster.`,
  { json: { type: "boolean" }, "install-only": { type: "boolean" } },
  true,
);
const root = fileURLToPath(new URL("..", import.meta.url));
const versions = "/usr/lib/postgresql";
const s3Version = "v1.8.0";

function programs() {
  if (process.env.POSTGRES_BIN) return process.env.POSTGRES_BIN;
  if (!existsSync(versions)) return undefined;
  const found = readdirSync(versions)
    .filter((name) => existsSync(join(versions, name, "bin", "initdb")))
    .sort((a, b) => Number(b) - Number(a));
  return found[0] && join(versions, found[0], "bin");
}

function install() {
  if (process.getuid?.() !== 0 || spawnSync("apt-get", ["--version"]).status !== 0) return;
  process.stderr.write("test:cluster: installing PostgreSQL and PgBouncer with apt-get …\n");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const stdio = ["ignore", 2, 2];
  spawnSync("apt-get", ["update"], { stdio, env });
  spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "postgresql", "pgbouncer"], { stdio, env });
}

/** Undefined when there is none and Go cannot build one. */
function s3Server() {
  if (process.env.S3_SERVER) return process.env.S3_SERVER;
  const folder = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "holdfast-cluster");
  const program = join(folder, "versitygw");
  if (existsSync(program)) return program;
  process.stderr.write(`test:cluster: building versitygw ${s3Version} with Go …\n`);
  mkdirSync(folder, { recursive: true });
  const env = { ...process.env, GOBIN: folder, CGO_ENABLED: "0" };
  spawnSync("go", ["install", `github.com/versity/versitygw/cmd/versitygw@${s3Version}`], {
    stdio: ["ignore", 2, 2],
    env,
  });
  return existsSync(program) ? program : undefined;
}

const hasPgBouncer = () => ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].some((path) => existsSync(path));

if (!programs() || !hasPgBouncer()) install();
const bin = programs();
if (!bin) {
  process.stderr.write("test:cluster: NOT RUN (PostgreSQL could not be installed)\n");
  process.exit(1);
}
const s3 = s3Server();
if (values["install-only"]) process.exit(0);
if (!s3) process.stderr.write("test:cluster: the tests with S3: NOT RUN (no S3 server could be built)\n");
if (!hasPgBouncer()) {
  process.stderr.write("test:cluster: the test with PgBouncer: NOT RUN (it is not installed)\n");
}
/** The first commit that served a cluster, built: a new version is installed beside it. */
function earlierProgram() {
  const git = (...args) => spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 2 ** 28 });
  const commit = git("log", "--diff-filter=A", "--format=%H", "-1", "--", "src/start-cluster.ts").stdout.trim();
  if (commit === "") return undefined;
  const folder = join(homedir(), ".cache", "holdfast", `earlier-${commit.slice(0, 12)}`);
  const program = join(folder, "dist", "src", "main.js");
  mkdirSync(folder, { recursive: true });
  // The checkout it was built from may be gone: it takes the packages of this one.
  rmSync(join(folder, "node_modules"), { recursive: true, force: true });
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  if (existsSync(program)) return program;
  const packed = spawnSync("git", ["archive", commit], { cwd: root, maxBuffer: 2 ** 28 });
  if (packed.status !== 0 || spawnSync("tar", ["-x", "-C", folder], { input: packed.stdout }).status !== 0)
    return undefined;
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  spawnSync(process.execPath, [tsc, "-p", join(folder, "tsconfig.server.json")], {
    cwd: folder,
    stdio: ["ignore", 2, 2],
  });
  return existsSync(program) ? program : undefined;
}

const tests = join(root, "dist", "test");
const suites = readdirSync(join(tests, "cluster")).filter((name) => name.endsWith(".cluster.js"));
// Stories of one server, told on three machines: each request goes to another of them.
const stories = ["grasp-flow", "grasp-clients", "grasp-invariant", "grasp-waiting", "maintainers"].map(
  (name) => `${name}.test.js`,
);
const files = [...suites.map((name) => join("cluster", name)), ...stories.map((name) => join("stories", name))]
  .filter((path) => positionals.length === 0 || positionals.some((word) => path.includes(word)))
  .map((path) => join(tests, path));
process.env.HOLDFAST_STORIES = "cluster";
if (files.some((path) => path.includes("upgrade.cluster"))) {
  const earlier = earlierProgram();
  if (earlier) process.env.HOLDFAST_EARLIER = earlier;
  else
    process.stderr.write(
      "test:cluster: the upgrade of an earlier version: NOT RUN (no earlier version could be built)\n",
    );
}
process.chdir(root);
process.env.POSTGRES_BIN = bin;
if (s3) process.env.S3_SERVER = s3;
runTests({ files, concurrency: 1, json: values.json });
