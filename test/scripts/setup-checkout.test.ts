import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const folder = mkdtempSync(join(tmpdir(), "holdfast-set-up-"));
after(() => rmSync(folder, { recursive: true }));

/** Writes what the small checkout's sources mean, in a tenth of the time that loading TypeScript takes. */
const smallCompiler = `
const { mkdirSync, readdirSync, readFileSync, writeFileSync } = require("node:fs");
const { include, exclude } = JSON.parse(readFileSync(process.argv[3], "utf8"));
for (const folder of include) {
  let names = [];
  try { names = readdirSync(folder); } catch {}
  for (const name of names.filter((name) => !(exclude && name.endsWith(".test.ts")))) {
    const source = readFileSync(folder + "/" + name, "utf8");
    mkdirSync("dist/" + folder, { recursive: true });
    const compiled = source.replace(/^declare .*$/m, "").replace(": number", "");
    writeFileSync("dist/" + folder + "/" + name.replace(/ts$/, "js"), compiled);
  }
}
`;

/** A small checkout with a compiler in place, so that nothing needs a network. */
function checkout(name: string, compiler: "small" | "TypeScript" = "small"): string {
  const root = join(folder, name);
  mkdirSync(join(root, "scripts"), { recursive: true });
  mkdirSync(join(root, "src"));
  mkdirSync(join(root, "node_modules"));
  for (const file of ["scripts/setup.mjs", "bin/holdfast", "tsconfig.server.json"]) cpSync(file, join(root, file));
  const typescript = join(root, "node_modules", "typescript");
  if (compiler === "TypeScript") symlinkSync(join(process.cwd(), "node_modules", "typescript"), typescript);
  else {
    mkdirSync(join(typescript, "bin"), { recursive: true });
    writeFileSync(join(typescript, "bin", "tsc"), smallCompiler);
  }
  const compilerOptions = {
    outDir: "dist",
    rootDir: ".",
    module: "NodeNext",
    types: [],
    lib: ["ES5"],
    skipLibCheck: true,
    incremental: true,
    tsBuildInfoFile: "dist/.tsbuildinfo",
  };
  writeFileSync(join(root, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src", "test"] }));
  writeFileSync(join(root, "package.json"), '{"type":"module"}');
  writeFileSync(join(root, "package-lock.json"), "{}");
  writeFileSync(join(root, "src", "a.ts"), "export const a: number = 1;\n");
  writeFileSync(join(root, "src", "a.test.ts"), 'import { a } from "./a.js";\na;\n');
  writeFileSync(join(root, "src", "main.ts"), "declare const console: any;\nconsole.log('{}');\n");
  const stamp = createHash("sha256").update("[null,null,null,null]").update("{}").digest("hex");
  writeFileSync(join(root, "node_modules", ".holdfast-installed"), stamp);
  return root;
}

interface Ended {
  readonly code: number | null;
  readonly printed: string;
  readonly said: string;
}

function run(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH ?? "", NODE_ENV: "production" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let printed = "";
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.on("close", (code) => resolve({ code, printed, said }));
  });
}

const setUp = (root: string): Promise<Ended> => run(join(root, "scripts", "setup.mjs"));
const start = (root: string): Promise<Ended> => run(join(root, "bin", "holdfast"));

test("of several processes that start at once exactly one builds, and all find the result", async () => {
  const root = checkout("many");
  const ended = await Promise.all(Array.from({ length: 5 }, () => setUp(root)));
  assert.deepEqual(
    ended.map(({ code }) => code),
    [0, 0, 0, 0, 0],
  );
  assert.equal(ended.filter(({ said }) => said.includes("building")).length, 1);
  assert.match(readFileSync(join(root, "dist", "src", "a.js"), "utf8"), /a = 1/);
  assert.ok(!existsSync(join(root, ".cache", "set-up.lock")));
});

test("nothing is said or done when nothing changed, and a changed source is built again", async () => {
  const root = checkout("twice");
  assert.match((await setUp(root)).said, /building/);
  assert.deepEqual(await setUp(root), { code: 0, printed: "", said: "" });
  writeFileSync(join(root, "src", "a.ts"), "export const a: number = 2;\n");
  assert.match((await setUp(root)).said, /building/);
  assert.match(readFileSync(join(root, "dist", "src", "a.js"), "utf8"), /a = 2/);
});

test("a source that changed is built again, also when its size and time are as before", async () => {
  const root = checkout("disguised");
  const source = join(root, "src", "a.ts");
  await start(root);
  await start(root);
  const { atime, mtime } = statSync(source);
  writeFileSync(source, "export const a: number = 7;\n");
  utimesSync(source, atime, mtime);
  assert.match((await start(root)).said, /building/);
  assert.match(readFileSync(join(root, "dist", "src", "a.js"), "utf8"), /a = 7/);
});

test("the lock of a set-up that was killed does not stop the next one", async () => {
  const root = checkout("stale");
  mkdirSync(join(root, ".cache", "set-up.lock"), { recursive: true });
  writeFileSync(join(root, ".cache", "set-up.lock", "pid"), String(2 ** 22 + 1));
  assert.equal((await setUp(root)).code, 0);
  assert.ok(existsSync(join(root, "dist", "src", "a.js")));
});

test("a build that fails says why, exits 1 and is tried again", async () => {
  const root = checkout("broken", "TypeScript");
  writeFileSync(join(root, "src", "a.ts"), "export const a: number = 'x';\n");
  for (const attempt of [1, 2]) {
    const ended = await setUp(root);
    assert.equal(ended.code, 1, `attempt ${attempt}`);
    assert.match(ended.said, /the build failed:\nsrc\/a\.ts\(1,14\)/);
  }
  assert.ok(!existsSync(join(root, ".cache", "set-up.lock")));
});

test("a linked node_modules is never installed into, because it belongs to another checkout", async () => {
  const owner = checkout("owner");
  const guest = checkout("guest");
  rmSync(join(guest, "node_modules"), { recursive: true });
  symlinkSync(join(owner, "node_modules"), join(guest, "node_modules"));
  writeFileSync(join(guest, "package-lock.json"), '{"other":true}');
  writeFileSync(join(owner, "node_modules", "precious"), "kept");
  const ended = await setUp(guest);
  assert.equal(ended.code, 0, ended.said);
  assert.doesNotMatch(ended.said, /installing/);
  assert.equal(readFileSync(join(owner, "node_modules", "precious"), "utf8"), "kept");
  assert.ok(lstatSync(join(guest, "node_modules")).isSymbolicLink());
});

test("a changed script in package.json is no reason to install again", async () => {
  const root = checkout("script");
  writeFileSync(join(root, "package.json"), '{"type":"module","scripts":{"bench":"x"}}');
  assert.doesNotMatch((await setUp(root)).said, /installing/);
});

test("a start builds the server alone, keeps stdout for the verb's answer, and tests build only the rest", async () => {
  const root = checkout("start", "TypeScript");
  const first = await start(root);
  assert.deepEqual([first.code, first.printed], [0, "{}\n"], first.said);
  assert.match(first.said, /building/);
  assert.deepEqual(await start(root), { code: 0, printed: "{}\n", said: "" });
  const compiled = join(root, "dist", "src", "a.js");
  assert.ok(existsSync(compiled));
  assert.ok(!existsSync(join(root, "dist", "src", "a.test.js")), "a server needs no tests");
  const builtAt = statSync(compiled).mtimeMs;
  assert.match((await setUp(root)).said, /building/);
  assert.ok(existsSync(join(root, "dist", "src", "a.test.js")));
  assert.equal(statSync(compiled).mtimeMs, builtAt, "what the start had compiled is not compiled again");
  assert.equal((await start(root)).said, "", "what the tests have built is enough to start");
});

test("a changed test makes no start build again, a changed source does, and nothing old is left", async () => {
  const root = checkout("changes");
  await setUp(root);
  writeFileSync(join(root, "src", "a.test.ts"), "export const other = 1;\n");
  assert.equal((await start(root)).said, "");
  assert.match((await setUp(root)).said, /building/);
  const before = readFileSync(join(root, "src", "a.ts"));
  writeFileSync(join(root, "src", "a.ts"), "export const a = 2;\n");
  assert.match((await start(root)).said, /building/);
  // Undone: dist holds the change, so that what was true of these sources before is true no longer.
  writeFileSync(join(root, "src", "a.ts"), before);
  assert.match((await setUp(root)).said, /building/);
  assert.match(readFileSync(join(root, "dist", "src", "a.js"), "utf8"), /a = 1/);
  rmSync(join(root, "src", "a.ts"));
  assert.match((await start(root)).said, /building/);
  assert.ok(!existsSync(join(root, "dist", "src", "a.js")));
});

test("a start that cannot be built says why on stderr and exits 1", async () => {
  const root = checkout("unreadable", "TypeScript");
  writeFileSync(join(root, "src", "a.ts"), "export const a = ;\n");
  const ended = await start(root);
  assert.deepEqual([ended.code, ended.printed], [1, ""]);
  assert.match(ended.said, /the build failed:\nsrc\/a\.ts\(1,18\)/);
});

test("a start never runs npm where packages are installed: it says what to do when others are asked for", async () => {
  const root = checkout("other-packages");
  assert.equal((await start(root)).code, 0);
  writeFileSync(join(root, "node_modules", "precious"), "kept");
  writeFileSync(join(root, "package-lock.json"), '{"other":true}');
  const ended = await start(root);
  assert.deepEqual([ended.code, ended.printed], [1, ""]);
  assert.match(ended.said, /packages this checkout asks for have changed: stop the servers .* `npm ci .*`npm start`/);
  assert.equal(readFileSync(join(root, "node_modules", "precious"), "utf8"), "kept");
  assert.ok(!existsSync(join(root, ".cache", "set-up.lock")));
});

test("a package that does not load under this Node is named, and nothing is installed", async () => {
  const root = checkout("other-node");
  assert.equal((await start(root)).code, 0);
  mkdirSync(join(root, "node_modules", "lmdb"));
  writeFileSync(join(root, "node_modules", "lmdb", "index.js"), "throw new Error('made for another Node');");
  // What was seen under another Node does not count under this one.
  rmSync(join(root, "dist", ".holdfast-server-seen"), { force: true });
  const ended = await start(root);
  assert.deepEqual([ended.code, ended.printed], [1, ""]);
  assert.match(ended.said, /lmdb does not load under Node \d.* \(made for another Node\): stop the servers/);
});

test("an installed package has no sources and is left as it is", async () => {
  const root = checkout("installed");
  assert.equal((await start(root)).code, 0);
  for (const file of ["tsconfig.json", "tsconfig.server.json", "package-lock.json", "src"]) {
    rmSync(join(root, file), { recursive: true });
  }
  rmSync(join(root, "node_modules"), { recursive: true });
  assert.deepEqual(await start(root), { code: 0, printed: "{}\n", said: "" });
});
