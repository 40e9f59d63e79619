// Runs the program's one file, with what V8 compiled of it in an earlier start: reading and compiling four megabytes of
// source takes longer than everything else a start does. bundle.mjs puts this beside it. What was compiled is kept
// beside it too, by the first server that may write there, for this very file, this Node and its flags. V8 takes what it
// is given without looking, so a file that is not whole is left alone.
const { createHash } = require("node:crypto");
const fs = require("node:fs");
const { createRequire } = require("node:module");
const path = require("node:path");
const { cachedDataVersionTag } = require("node:v8");
const { Script } = require("node:vm");

const file = path.join(__dirname, "main.script");
const { size, mtimeMs } = fs.statSync(file);
const ofThisFile = `main-${size}-${Math.floor(mtimeMs)}-`;
const ending = ".compiled";
const kept = path.join(__dirname, `${ofThisFile}${cachedDataVersionTag()}${ending}`);
const digestBytes = 32;
const digestOf = (data) => createHash("sha256").update(data).digest();

function readKept() {
  try {
    const bytes = fs.readFileSync(kept);
    const data = bytes.subarray(digestBytes);
    return digestOf(data).equals(bytes.subarray(0, digestBytes)) ? data : undefined;
  } catch {
    return undefined;
  }
}

const cachedData = readKept();
// It is ASCII. As it was read, and not joined with anything, it lies outside of V8's heap.
const script = new Script(fs.readFileSync(file, "latin1"), { filename: file, cachedData });
const isKept = cachedData !== undefined && script.cachedDataRejected !== true;

/** For a server that has started: everything a start runs is compiled then. Stops it for some 50 ms, once for each build. */
function keepCompiled() {
  if (isKept) return;
  const part = `${kept}.${process.pid}`;
  try {
    fs.accessSync(__dirname, fs.constants.W_OK);
    const data = script.createCachedData();
    fs.writeFileSync(part, Buffer.concat([digestOf(data), data]));
    // As readable as the program itself, whatever the umask.
    fs.chmodSync(part, fs.statSync(file).mode & 0o666);
    fs.renameSync(part, kept);
    for (const name of fs.readdirSync(__dirname)) {
      if (name.endsWith(ending) && !name.startsWith(ofThisFile)) fs.rmSync(path.join(__dirname, name), { force: true });
    }
  } catch {
    // The next start compiles anew.
    fs.rmSync(part, { force: true });
  }
}

const module_ = { exports: {} };
script.runInThisContext()(module_.exports, createRequire(file), module_, file, __dirname, keepCompiled);
