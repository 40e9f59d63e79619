// npm run test:interop — real clients against a started server: `ngit` (a Rust crate), `nak` (a Go module) and `git-lfs` (of the
// system). Needs cargo and go; installs the clients into the user's cache folder, which takes a quarter of an hour the first
// time, and git-lfs with apt-get where it is not there.
// git 2.46 or newer, with a helper that signs, is the system's or the one that HOLDFAST_NEWER_GIT names.
// What cannot be installed is printed as not run, never as passed.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";
import { runTests } from "./run-tests.mjs";

const { values } = argumentsOf(
  `npm run test:interop [-- --json]              ngit, nak and git-lfs against a started server
                     [-- --install-only]      installs them and runs nothing; exit 1 when none could be installed

Needs cargo and go: the clients are installed into holdfast-interop in the user's cache folder, once for all checkouts;
git-lfs is the system's, installed with apt-get if it is missing.
NGIT_VERSION names another ngit; HOLDFAST_NEWER_GIT a git 2.46 or newer, where the system's is older.`,
  { json: { type: "boolean" }, "install-only": { type: "boolean" } },
);
const root = fileURLToPath(new URL("..", import.meta.url));
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "holdfast-interop");
const longestInstallMs = 40 * 60_000;
const bin = join(cache, "bin");
mkdirSync(bin, { recursive: true });

// A version whose lock file can be installed today; newer ones are tried by setting NGIT_VERSION.
const ngitVersion = process.env.NGIT_VERSION ?? "3.0.3";

const clients = [
  {
    name: "ngit",
    tool: "cargo",
    install: ["install", "ngit", "--version", ngitVersion, "--locked", "--root", cache],
  },
  { name: "nak", tool: "go", install: ["install", "github.com/fiatjaf/nak@latest"] },
  { name: "git-lfs", tool: "apt-get", install: ["install", "-y", "git-lfs"] },
];

const isThere = (name) =>
  [bin, ...(process.env.PATH ?? "").split(":")].some((folder) => existsSync(join(folder, name)));

function ensure({ name, tool, install }) {
  if (isThere(name)) return true;
  process.stderr.write(`test:interop: installing ${name} with ${tool} …\n`);
  const env = { ...process.env, GOBIN: bin };
  const result = spawnSync(tool, install, { stdio: ["ignore", 2, 2], env, timeout: longestInstallMs });
  if (result.status === 0 && isThere(name)) return true;
  process.stderr.write(`test:interop: ${name}: NOT RUN (it could not be installed with ${tool})\n`);
  return false;
}

/** Before 2.46 git knows only Basic from its credential helpers. */
function hasNewerGit() {
  const program = process.env.HOLDFAST_NEWER_GIT ?? "git";
  const said = spawnSync(program, ["--version"], { encoding: "utf8" }).stdout ?? "";
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(said) ?? []).slice(1).map(Number);
  if (major > 2 || (major === 2 && minor >= 46)) return true;
  process.stderr.write(
    `test:interop: newer-git: NOT RUN (${program} is older than 2.46: name a newer one with HOLDFAST_NEWER_GIT)\n`,
  );
  return false;
}

const available = clients.filter(ensure).map(({ name }) => name);
if (hasNewerGit()) available.push("newer-git");
if (values["install-only"]) process.exit(available.length > 0 ? 0 : 1);
const folder = join(root, "dist", "test", "interop");
const files = readdirSync(folder)
  .filter((file) => file.endsWith(".interop.js") && available.includes(file.split(".")[0]))
  .map((file) => join(folder, file));
if (files.length === 0) process.exit(1);
process.chdir(root);
process.env.PATH = `${bin}:${process.env.PATH}`;
runTests({ files, concurrency: 1, json: values.json });
