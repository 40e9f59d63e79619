// npm run test:install — installs what `npm pack` packs as a user would and, under every Node version that can be had, runs
// the smoke story (start, publish a repository, clone it, restart, clone again) and the store's contract; with --deb also
// the Debian package, on this very machine. What cannot be installed is printed as not run, never as passed.
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";

const { values } = argumentsOf(
  `npm run test:install [-- --nodes 22,24]     the packed program under these versions of Node; 20,22,24,26 if left out
                     [-- --single]          also the server as a single file, which is built first
                     [-- --deb]             also builds the Debian package, installs it here and removes it again (as root)`,
  { nodes: { type: "string" }, single: { type: "boolean" }, deb: { type: "boolean" } },
);
const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "holdfast-install-"));
const longestMs = 180_000;
let failed = false;

const say = (text) => process.stdout.write(`test:install: ${text}\n`);
const seconds = (begun) => `${((Date.now() - begun) / 1000).toFixed(1)} s`;

/** Without settings and npm's variables of whoever runs this. */
function environment(more = {}) {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(NGIT_|npm_(?!config_)|NODE_(ENV|OPTIONS|TEST_CONTEXT|V8_COVERAGE)$)/.test(name),
  );
  return { ...Object.fromEntries(kept), GIT_TERMINAL_PROMPT: "0", ...more };
}

function run(command, args, options = {}) {
  const { env, cwd = folder } = options;
  const ended = spawnSync(command, args, { cwd, env: environment(env), encoding: "utf8", timeout: longestMs });
  if (ended.status === 0) return ended.stdout;
  throw new Error(
    `${command} ${args.join(" ")}: ${ended.error?.message ?? ended.signal ?? ended.status}\n${ended.stdout}${ended.stderr}`,
  );
}

async function attempt(title, work) {
  const begun = Date.now();
  try {
    await work();
    say(`${title}: ok (${seconds(begun)})`);
  } catch (error) {
    failed = true;
    say(`${title}: FAILED (${seconds(begun)})\n${error.message}`);
  }
}

const freePort = () =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });

async function untilAnswers(port, child) {
  const giveUpAt = Date.now() + 60_000;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    if (Date.now() > giveUpAt) throw new Error("the server does not answer");
    const answer = await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** `holdfast`: the command and its first arguments. `serve`: the same for the server, where that is another user's. */
async function smokeStory(name, holdfast, serve, settings = {}) {
  const place = join(folder, `story-${name}`);
  mkdirSync(place);
  const port = await freePort();
  const env = { ...settings, NGIT_BIND_ADDRESS: `127.0.0.1:${port}`, NGIT_DOMAIN: `localhost:${port}` };
  const init = [...holdfast, "init", join(place, "hello"), "--server", `localhost:${port}`];
  let url;
  for (const turn of ["first", "second"]) {
    const [command, ...args] = serve;
    const child = spawn(command, args, { cwd: place, env: environment(env), stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
    try {
      await untilAnswers(port, child);
      if (turn === "first") {
        const key = join(place, "my.key");
        const told = JSON.parse(run(init[0], [...init.slice(1), "--key", key, "--json"]));
        url = JSON.stringify(told).match(/http:[^"]*\.git/)?.[0];
        if (!url) throw new Error(`init told no clone URL: ${JSON.stringify(told)}`);
      }
      run("git", ["clone", "--quiet", url, join(place, turn)]);
      const commit = run("git", ["-C", join(place, turn), "rev-parse", "HEAD"]);
      if (commit !== run("git", ["-C", join(place, "hello"), "rev-parse", "HEAD"]))
        throw new Error("another commit was cloned");
    } catch (error) {
      throw new Error(`${error.message}\nthe server said:\n${said.slice(-4000)}`);
    } finally {
      const ended = new Promise((resolve) => child.on("exit", resolve));
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        await ended;
      }
    }
  }
}

/** Its path, or undefined where there is no such version for this system. */
function nodeOf(major) {
  if (Number(process.versions.node.split(".")[0]) === major) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const place = join(folder, `node-${major}`);
  mkdirSync(place);
  writeFileSync(join(place, "package.json"), "{}");
  try {
    run("npm", ["install", `${name}@${major}`, "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: place });
  } catch {
    return undefined;
  }
  const path = join(place, "node_modules", name, "bin", "node");
  return existsSync(path) ? path : undefined;
}

const contract = [
  "src/store/lmdb/open",
  "src/store/memory/memory-store",
  "src/store/lmdb/upgrade",
  "src/nostr/verify/engines",
];

async function underNode(major, installed) {
  const node = nodeOf(major);
  if (!node) {
    say(`Node ${major}: NOT RUN (it could not be installed)`);
    return;
  }
  const version = run(node, ["--version"]).trim();
  await attempt(`the packed program under Node ${version}`, () =>
    smokeStory(`node-${major}`, [node, installed], [node, installed]),
  );
  await attempt(`the store's contract under Node ${version}`, () => {
    const files = contract.map((name) => join(root, "dist", `${name}.test.js`));
    run(node, ["--test", ...files], { cwd: root });
  });
  rmSync(join(folder, `node-${major}`), { recursive: true, force: true });
}

function packed() {
  run("npm", ["pack", "--pack-destination", folder], { cwd: root });
  const name = readdirSync(folder).find((file) => file.endsWith(".tgz"));
  const listed = run("tar", ["-tzf", join(folder, name)])
    .trim()
    .split("\n");
  const unwanted = listed.filter((path) =>
    /\.test\.js|\/testing\/|package\/(dist\/)?(test|bench|simulate)\/|package-lock/.test(path),
  );
  if (unwanted.length > 0) throw new Error(`the package has what no user needs: ${unwanted.slice(0, 5).join(", ")}`);
  say(`${name}: ${statSync(join(folder, name)).size} bytes, ${listed.length} files`);
  return join(folder, name);
}

async function singleFile() {
  run(process.execPath, [join(root, "scripts/package-single.mjs"), "--output", folder], { cwd: root });
  const file = join(folder, `holdfast-${process.platform}-${process.arch}`);
  say(`${basename(file)}: ${statSync(file).size} bytes`);
  await smokeStory("single", [file], [file], { XDG_CACHE_HOME: join(folder, "cache") });
}

const canInstallDeb = () => {
  if (process.getuid?.() !== 0) return "only root can install packages";
  if (spawnSync("dpkg-deb", ["--version"]).status !== 0) return "there is no dpkg-deb";
  if (spawnSync("dpkg", ["-s", "holdfast"]).status === 0) return "a package holdfast is installed here already";
  return undefined;
};

async function debianPackage() {
  run(process.execPath, [join(root, "scripts/package-deb.mjs"), "--output", folder], { cwd: root });
  const file = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith(".deb")),
  );
  say(`${basename(file)}: ${statSync(file).size} bytes`);
  const apt = (...args) =>
    run("apt-get", ["-y", "-o", "APT::Sandbox::User=root", ...args], { env: { DEBIAN_FRONTEND: "noninteractive" } });
  apt("install", "--no-install-recommends", file);
  try {
    const must = (isSo, what) => {
      if (!isSo) throw new Error(what);
    };
    must(/^\d+\.\d+/.test(run("holdfast", ["--version"])), "holdfast is not on the PATH");
    const data = statSync("/var/lib/holdfast");
    const user = run("id", ["-u", "holdfast"]).trim();
    must(String(data.uid) === user && (data.mode & 0o777) === 0o700, "/var/lib/holdfast is not the user's alone");
    must(existsSync("/usr/share/man/man1/holdfast.1.gz"), "there is no manual page");
    must(
      readFileSync("/etc/holdfast.conf", "utf8").startsWith("NGIT_DATA_PATH=/var/lib/holdfast\n"),
      "the settings name no data",
    );
    const unit = readFileSync("/lib/systemd/system/holdfast.service", "utf8");
    const start = /^ExecStart=(.*)$/m.exec(unit)?.[1]?.split(" ") ?? [];
    const asUser = ["setpriv", "--reuid", "holdfast", "--regid", "holdfast", "--clear-groups", "--", ...start];
    await smokeStory("deb", ["holdfast"], asUser, { HOME: "/var/lib/holdfast" });
    must(existsSync("/var/lib/holdfast/relay"), "the data is somewhere else");
  } finally {
    apt("purge", "holdfast");
  }
  if (existsSync("/usr/bin/holdfast") || existsSync("/etc/holdfast.conf"))
    throw new Error("the package left files behind");
  if (!existsSync("/var/lib/holdfast/relay")) throw new Error("removing the package deleted the data");
  rmSync("/var/lib/holdfast", { recursive: true });
  run("userdel", ["holdfast"]);
}

try {
  const file = packed();
  const prefix = join(folder, "prefix");
  const begun = Date.now();
  run("npm", ["install", "--global", "--prefix", prefix, "--no-audit", "--no-fund", file]);
  say(`npm install --global took ${seconds(begun)}`);
  const installed = join(prefix, "lib", "node_modules", "holdfast", "bin", "holdfast");
  await attempt("npx", () => {
    if (!/^\d+\.\d+/.test(run("npx", ["--yes", `./${basename(file)}`, "--version"])))
      throw new Error("it printed no version");
  });
  for (const major of (values.nodes ?? "20,22,24,26").split(",")) await underNode(Number(major), installed);
  if (values.single) await attempt("the single file", singleFile);
  if (values.deb) {
    const why = canInstallDeb();
    if (why) say(`the Debian package: NOT RUN (${why})`);
    else await attempt("the Debian package, installed and removed", debianPackage);
  }
} catch (error) {
  failed = true;
  say(`FAILED\n${error.message}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
