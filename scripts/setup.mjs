// Makes a checkout ready to run: installs packages and compiles, each only when its inputs changed.
// Uses nothing but Node, because it runs before anything is installed.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const installStamp = join(root, "node_modules", ".holdfast-installed");
const buildStamp = join(root, "dist", ".holdfast-built");
const sourceFolders = ["src", "test", "bench", "simulate"];

function fail(message) {
  process.stderr.write(`holdfast set-up: ${message}\n`);
  process.exit(1);
}

function run(command, args) {
  return spawnSync(command, args, { cwd: root, stdio: ["ignore", "pipe", "pipe"], encoding: "utf8" });
}

function hashFiles(names) {
  const hash = createHash("sha256").update(process.version);
  for (const name of names) hash.update(readFileSync(join(root, name)));
  return hash.digest("hex");
}

/** Names, sizes and times of all sources: quick, and changes whenever a source does. */
function sourcesFingerprint() {
  const hash = createHash("sha256").update(readFileSync(join(root, "tsconfig.json")));
  const visit = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (entry.name.endsWith(".ts")) {
        const { size, mtimeMs } = statSync(path);
        hash.update(`${path}\0${size}\0${mtimeMs}\n`);
      }
    }
  };
  for (const folder of sourceFolders) if (existsSync(join(root, folder))) visit(join(root, folder));
  return hash.digest("hex");
}

const stampIs = (file, value) => existsSync(file) && readFileSync(file, "utf8") === value;

function install() {
  const wanted = hashFiles(["package.json", "package-lock.json"]);
  if (stampIs(installStamp, wanted)) return;
  process.stderr.write("holdfast set-up: installing packages…\n");
  // --include=dev: the compiler is needed even under NODE_ENV=production.
  let result = run("npm", ["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"]);
  if (result.status !== 0 && /EUSAGE/.test(result.stderr ?? "")) {
    result = run("npm", ["install", "--no-save", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"]);
  }
  if (result.error) fail(`npm could not be started (${result.error.message}). Install Node 20 or newer with npm.`);
  if (result.status !== 0) fail(`npm ci failed. Is the npm registry reachable?\n${result.stderr}`);
  writeFileSync(installStamp, wanted);
}

function build() {
  const wanted = sourcesFingerprint();
  if (stampIs(buildStamp, wanted)) return;
  process.stderr.write("holdfast set-up: building…\n");
  rmSync(buildStamp, { force: true });
  const result = run(process.execPath, [join("node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.json"]);
  if (result.status !== 0) fail(`the build failed:\n${result.stdout}${result.stderr}`);
  mkdirSync(join(root, "dist"), { recursive: true });
  writeFileSync(buildStamp, wanted);
}

/** Installs and builds what is missing. An installed package without sources is left as it is. */
export function setUp({ installOnly = false } = {}) {
  const major = Number(process.versions.node.split(".")[0]);
  if (major < 20) fail(`Node ${process.versions.node} is too old: install Node 20 or newer.`);
  if (!existsSync(join(root, "tsconfig.json"))) return;
  install();
  if (!installOnly) build();
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  setUp({ installOnly: process.argv.includes("--install-only") });
}
