// Makes a checkout ready to run: installs packages, compiles, and makes one file of it (bundle.mjs), each only when its
// inputs changed. A start compiles what a server runs and checks no types, which takes a fifth of the time; tests and
// benchmarks compile and check all.
// Uses nothing but Node, because it runs before anything is installed. Dozens of servers may start from one checkout
// at the same moment: a lock lets one of them do the work while the others wait for it.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** For what a start needs only when something changed. */
const require = createRequire(import.meta.url);
const createHash = (name) => require("node:crypto").createHash(name);
const root = fileURLToPath(new URL("..", import.meta.url));
const installStamp = join(root, "node_modules", ".holdfast-installed");
const sourceFolders = ["src", "test", "bench", "simulate"];
/** Both compile into dist and share what the compiler remembers, so that neither repeats the other's work. */
const builds = {
  server: {
    config: "tsconfig.server.json",
    stamp: join(root, "dist", ".holdfast-server-built"),
    seen: join(root, "dist", ".holdfast-server-seen"),
    folders: ["src"],
    holds: (path) => !/\/testing\/|\.test\.ts$/.test(path),
  },
  all: {
    config: "tsconfig.json",
    stamp: join(root, "dist", ".holdfast-built"),
    seen: join(root, "dist", ".holdfast-seen"),
    folders: sourceFolders,
    holds: () => true,
  },
};
const bundler = join("scripts", "bundle.mjs");
/** What makes one file of the compiled ones. */
const bundlers = [bundler, join("scripts", "start-one-file.cjs")];
const lock = join(root, ".cache", "set-up.lock");
const lockOwner = join(lock, "pid");
const longestWaitMs = 10 * 60_000;

const say = (message) => process.stderr.write(`holdfast set-up: ${message}\n`);

function fail(message) {
  releaseLock();
  say(message);
  process.exit(1);
}

function run(command, args) {
  const maxBuffer = 64 * 2 ** 20;
  return require("node:child_process").spawnSync(command, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    encoding: "utf8",
    maxBuffer,
  });
}

/** What decides which packages are installed, and nothing else of package.json: a new script is no reason to reinstall. */
function packagesFingerprint() {
  const { dependencies, devDependencies, optionalDependencies, overrides } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  );
  return createHash("sha256")
    .update(JSON.stringify([dependencies, devDependencies, optionalDependencies, overrides]))
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

/** The files a build is made of, below the root. */
function sourcesOf({ config, folders, holds }) {
  const found = ["tsconfig.json", config, ...bundlers.filter((path) => existsSync(join(root, path)))];
  const visit = (folder) => {
    const entries = readdirSync(join(root, folder), { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(path);
      else if (path.endsWith(".ts") && holds(path)) found.push(path);
    }
  };
  for (const folder of folders) if (existsSync(join(root, folder))) visit(folder);
  return [...new Set(found)];
}

/**
 * Names and contents of the sources: a copied or newly cloned checkout counts as what it contains. And the packages, because
 * the program has them in it.
 */
function sourcesFingerprint(part) {
  const hash = createHash("sha256").update(packagesFingerprint());
  for (const path of sourcesOf(part)) hash.update(`${path}\0`).update(readFileSync(join(root, path)));
  return hash.digest("hex");
}

const stampIs = (file, value) => existsSync(file) && readFileSync(file, "utf8") === value;
// A linked node_modules belongs to another checkout. `npm ci` begins by deleting what is in it, through the link, under
// everybody who uses it: only its owner may install.
const isLinked = () => lstatSync(join(root, "node_modules"), { throwIfNoEntry: false })?.isSymbolicLink() === true;
const isInstalled = () => isLinked() || stampIs(installStamp, packagesFingerprint());
// Packages with compiled parts bring one for every Node that is supported. Should one not load under another Node than the
// one it was installed with, installing again is for people: a server that runs from this folder would lose its packages.
const compiledPackages = ["lmdb", "koffi"];
const isCalledItself = process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href;
/** npm is started only where a person asked for it (`npm start`, this program) or nothing is installed yet. */
const mayRunNpm = () => isCalledItself || process.env.npm_lifecycle_event !== undefined || !existsSync(installStamp);
const howToInstall = "stop the servers that run from this folder, then run `npm ci --include=dev --ignore-scripts`";

function packagesMustLoad() {
  for (const name of compiledPackages) {
    if (!existsSync(join(root, "node_modules", name))) continue;
    try {
      require(join(root, "node_modules", name));
    } catch (error) {
      const sentence = String(error.message).split("\n")[0];
      fail(`the package ${name} does not load under Node ${process.versions.node} (${sentence}): ${howToInstall}`);
    }
  }
}
const isBuilt = (part) => stampIs(builds[part].stamp, sourcesFingerprint(builds[part]));

/**
 * What was built, and sizes and times of everything the checks above read: while these are the same, the answer is the
 * same, and a start does not read hundreds of files. The time of a change (ctime) cannot be set by a program.
 */
function glanceAt({ stamp, ...part }) {
  const inputs = ["package.json", "package-lock.json", "node_modules", "node_modules/.holdfast-installed"];
  const lines = [...inputs, ...sourcesOf(part)].map((path) => {
    const found = lstatSync(join(root, path), { bigint: true, throwIfNoEntry: false });
    return `${path} ${found?.size} ${found?.mtimeNs} ${found?.ctimeNs}`;
  });
  return [process.version, existsSync(stamp) ? readFileSync(stamp, "utf8") : "", ...lines].join("\n");
}

function isReady(part) {
  const glance = glanceAt(builds[part]);
  const { seen } = builds[part];
  if (stampIs(seen, glance)) return true;
  if (!isInstalled() || !isBuilt(part)) return false;
  packagesMustLoad();
  try {
    // Renamed into place: another start must not read half of it.
    writeFileSync(`${seen}.${process.pid}`, glance);
    renameSync(`${seen}.${process.pid}`, seen);
  } catch {
    // A checkout that cannot be written is checked in full each time.
  }
  return true;
}

function install() {
  if (isInstalled()) return;
  if (!mayRunNpm())
    fail(`the packages this checkout asks for have changed: ${howToInstall}, or start with \`npm start\``);
  const wanted = packagesFingerprint();
  say("installing packages (npm ci)…");
  // --include=dev: the compiler is needed even under NODE_ENV=production.
  const options = ["--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
  let result = run("npm", ["ci", ...options]);
  if (result.status !== 0 && /EUSAGE/.test(result.stderr ?? "")) {
    say("this npm does not accept the lock file; installing without it…");
    result = run("npm", ["install", "--no-save", ...options]);
  }
  if (result.error) fail(`npm could not be started (${result.error.message}). Install Node 20 or newer with npm.`);
  if (result.status !== 0) fail(`npm failed. Is the npm registry reachable?\n${result.stderr}`);
  writeFileSync(installStamp, wanted);
}

function build(part) {
  const made = part === "all" ? ["all", "server"] : [part];
  // Taken before compiling: a source that changes meanwhile makes the next start build again.
  const wanted = made.map((one) => sourcesFingerprint(builds[one]));
  say("building (tsc)…");
  for (const { stamp } of Object.values(builds)) rmSync(stamp, { force: true });
  const result = run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", builds[part].config]);
  if (result.status !== 0) fail(`the build failed:\n${result.stdout}${result.stderr}`);
  mkdirSync(join(root, "dist"), { recursive: true });
  for (const folder of sourceFolders) removeOrphans(folder);
  makeOneFile();
  const commit = run("git", ["rev-parse", "--short=12", "HEAD"]);
  writeFileSync(
    join(root, "dist", "build.json"),
    `${JSON.stringify({ commit: commit.status === 0 ? commit.stdout.trim() : "unknown" })}\n`,
  );
  for (const [index, one] of made.entries()) writeFileSync(builds[one].stamp, wanted[index]);
}

/** Where the bundler has no build for this system, people start the compiled files one by one: slower, and the same program. */
function makeOneFile() {
  rmSync(join(root, "dist", "program"), { recursive: true, force: true });
  if (!existsSync(join(root, "node_modules", "esbuild"))) return;
  const { status, stderr } = run(process.execPath, [bundler]);
  if (status !== 0) say(`the program could not be made one file and starts more slowly:\n${stderr}`);
}

/** Removes what was compiled from a source that is gone. */
function removeOrphans(folder) {
  if (!existsSync(join(root, "dist", folder))) return;
  for (const entry of readdirSync(join(root, "dist", folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    const source = path.replace(/\.js(?:\.map)?$/, ".ts");
    if (entry.isDirectory()) removeOrphans(path);
    else if (source !== path && !existsSync(join(root, source))) rmSync(join(root, "dist", path));
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Whether the lock's owner is gone. Its directory is made a moment before its number is written into it. */
function lockIsStale() {
  try {
    const pid = Number(readFileSync(lockOwner, "utf8"));
    if (pid > 0) return !isAlive(pid);
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  const made = statSync(lock, { throwIfNoEntry: false });
  return made !== undefined && Date.now() - made.mtimeMs > 5000;
}

let holdsLock = false;

function takeLock() {
  mkdirSync(join(root, ".cache"), { recursive: true });
  const giveUpAt = Date.now() + longestWaitMs;
  let waits = false;
  for (;;) {
    try {
      mkdirSync(lock);
      holdsLock = true;
      writeFileSync(lockOwner, String(process.pid));
      return;
    } catch (error) {
      if (error.code !== "EEXIST") fail(`cannot write to ${root} (${error.code}).`);
    }
    if (lockIsStale()) rmSync(lock, { recursive: true, force: true });
    else {
      if (!waits) say("another process is setting up this checkout; waiting for it…");
      waits = true;
      if (Date.now() > giveUpAt) fail(`waited ten minutes. If no other set-up is running, delete ${lock}.`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    }
  }
}

function releaseLock() {
  if (holdsLock) rmSync(lock, { recursive: true, force: true });
  holdsLock = false;
}

/** Installs and builds what is missing of "server", "all" or "nothing". A package without sources is left as it is. */
export function setUp(part) {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 20) fail(`Node ${process.versions.node} is too old: install Node 20 or newer.`);
  if (!existsSync(join(root, "tsconfig.json"))) return;
  if (part === "nothing" ? isInstalled() : isReady(part)) return;
  takeLock();
  try {
    install();
    if (part !== "nothing" && !isBuilt(part)) build(part);
  } finally {
    releaseLock();
  }
}

if (isCalledItself) {
  const words = process.argv.slice(2);
  const unknown = words.find((word) => !["--server", "--install-only", "--help"].includes(word));
  if (unknown !== undefined) {
    process.stderr.write(`Unknown option '${unknown}' (--help lists the arguments)\n`);
    process.exit(2);
  }
  if (words.includes("--help")) {
    process.stdout.write(`node scripts/setup.mjs      installs packages and compiles everything, where something changed
                            --server only what a server runs, --install-only nothing\n`);
  } else if (words.includes("--install-only")) setUp("nothing");
  else setUp(words.includes("--server") ? "server" : "all");
}
