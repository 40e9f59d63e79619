// npm run test:cluster — several machines as one, on a real PostgreSQL: the store's contract on three nodes, and what must
// happen when parts of a cluster fail. Each suite starts a PostgreSQL of its own in a folder of its own, on loopback.
// What cannot be installed is printed as not run, never as passed.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";
import { runTests } from "./run-tests.mjs";

const { values, positionals } = argumentsOf(
  `npm run test:cluster [-- --json]              three nodes on a real PostgreSQL
                     [-- <word> …]            only suites whose name contains one of the words
                     [-- --install-only]      installs PostgreSQL and runs nothing; exit 1 when it could not be installed

Uses the newest PostgreSQL under /usr/lib/postgresql, or the programs in the folder POSTGRES_BIN. If there is none, root
installs Debian's package, and PgBouncer with it. PostgreSQL itself runs as the user postgres, or as the caller if that is not root.`,
  { json: { type: "boolean" }, "install-only": { type: "boolean" } },
  true,
);
const root = fileURLToPath(new URL("..", import.meta.url));
const versions = "/usr/lib/postgresql";

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
  process.stderr.write("test:cluster: installing PostgreSQL with apt-get …\n");
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const stdio = ["ignore", 2, 2];
  spawnSync("apt-get", ["update"], { stdio, env });
  spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "postgresql", "pgbouncer"], { stdio, env });
}

if (!programs()) install();
const bin = programs();
if (!bin) {
  process.stderr.write("test:cluster: NOT RUN (PostgreSQL could not be installed)\n");
  process.exit(1);
}
if (values["install-only"]) process.exit(0);
if (!["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].some((path) => existsSync(path))) {
  process.stderr.write("test:cluster: the test with PgBouncer: NOT RUN (it is not installed)\n");
}
const folder = join(root, "dist", "test", "cluster");
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".cluster.js"))
  .filter((name) => positionals.length === 0 || positionals.some((word) => name.includes(word)))
  .map((name) => join(folder, name));
process.chdir(root);
process.env.POSTGRES_BIN = bin;
runTests({ files, concurrency: 1, json: values.json });
