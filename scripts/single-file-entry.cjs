// What the single file runs first: unpacks the program it carries into the user's cache folder, once for each build, and
// goes on there. Compiled packages, threads and the launcher's process need files of their own on the disk.
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const { createRequire } = require("node:module");
const os = require("node:os");
const path = require("node:path");
const sea = require("node:sea");

const tree = Buffer.from(sea.getRawAsset("tree"));
const name = createHash("sha256").update(tree).digest("hex").slice(0, 32);
const compiled = `/holdfast/${name}/dist/`;
const ours = path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), ".cache"), "holdfast", name);

function refuse(sentence) {
  process.stderr.write(`holdfast: ${sentence}\n`);
  process.exit(1);
}

/** Others on the machine could put code in wait in a folder that is not ours alone. */
function mustBeOurs(folder) {
  const { uid, mode } = fs.lstatSync(folder);
  if (uid === process.getuid() && (mode & 0o022) === 0) return;
  refuse(`${folder} belongs to another user or can be written by others: delete it, or set XDG_CACHE_HOME`);
}

function unpack() {
  const part = `${ours}.${process.pid}`;
  try {
    fs.mkdirSync(part, { recursive: true, mode: 0o700 });
    const ended = require("node:child_process").spawnSync("tar", ["-xzf", "-", "-C", part], { input: tree });
    if (ended.status !== 0) throw new Error(ended.error?.message ?? String(ended.stderr));
    fs.renameSync(part, ours);
  } catch (error) {
    fs.rmSync(part, { recursive: true, force: true });
    if (!fs.existsSync(ours))
      refuse(
        `the program cannot be unpacked into ${ours} (${error.message}): set XDG_CACHE_HOME to a folder that can be written`,
      );
  }
}

// A process that the program forks gets Node's own flags and a file of the tree before its arguments.
const at = process.argv.findIndex((word, index) => index > 1 && word.includes(compiled));
if (at > 1 && process.argv.slice(2, at).every((word) => word.startsWith("--"))) {
  for (const flag of process.argv.slice(2, at)) require("node:v8").setFlagsFromString(flag);
  process.argv.splice(1, at - 1);
  mustBeOurs(process.argv[1].slice(0, process.argv[1].indexOf(compiled) + compiled.indexOf("/dist/")));
} else {
  if (!fs.existsSync(ours)) unpack();
  mustBeOurs(ours);
  process.argv[1] = path.join(ours, "dist/program/start.cjs");
}
// The single file's own loader knows no files: one for files on the disk does.
createRequire(process.argv[1])(process.argv[1]);
