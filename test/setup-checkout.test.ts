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
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const folder = mkdtempSync(join(tmpdir(), "holdfast-set-up-"));
after(() => rmSync(folder, { recursive: true }));

/** A small checkout with the compiler in place, so that nothing needs a network. */
function checkout(name: string): string {
  const root = join(folder, name);
  mkdirSync(join(root, "scripts"), { recursive: true });
  mkdirSync(join(root, "src"));
  mkdirSync(join(root, "node_modules"));
  cpSync(join("scripts", "setup.mjs"), join(root, "scripts", "setup.mjs"));
  symlinkSync(join(process.cwd(), "node_modules", "typescript"), join(root, "node_modules", "typescript"));
  const compilerOptions = {
    outDir: "dist",
    rootDir: ".",
    module: "NodeNext",
    types: [],
    lib: ["ES5"],
    skipLibCheck: true,
  };
  writeFileSync(join(root, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["src"] }));
  writeFileSync(join(root, "package.json"), '{"type":"module"}');
  writeFileSync(join(root, "package-lock.json"), "{}");
  writeFileSync(join(root, "src", "a.ts"), "export const a: number = 1;\n");
  const stamp = createHash("sha256").update(process.version).update("[null,null,null,null]").update("{}").digest("hex");
  writeFileSync(join(root, "node_modules", ".holdfast-installed"), stamp);
  return root;
}

function setUp(root: string): Promise<{ code: number | null; said: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [join(root, "scripts", "setup.mjs")], {
      env: { PATH: process.env.PATH ?? "", NODE_ENV: "production" },
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.on("close", (code) => resolve({ code, said }));
  });
}

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
  assert.deepEqual(await setUp(root), { code: 0, said: "" });
  writeFileSync(join(root, "src", "a.ts"), "export const a: number = 2;\n");
  assert.match((await setUp(root)).said, /building/);
  assert.match(readFileSync(join(root, "dist", "src", "a.js"), "utf8"), /a = 2/);
});

test("the lock of a set-up that was killed does not stop the next one", async () => {
  const root = checkout("stale");
  mkdirSync(join(root, ".cache", "set-up.lock"), { recursive: true });
  writeFileSync(join(root, ".cache", "set-up.lock", "pid"), String(2 ** 22 + 1));
  assert.equal((await setUp(root)).code, 0);
  assert.ok(existsSync(join(root, "dist", "src", "a.js")));
});

test("a build that fails says why, exits 1 and is tried again", async () => {
  const root = checkout("broken");
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
