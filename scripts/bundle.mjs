// Makes the server that people start (dist/program) out of the compiled files (dist/src): one file with the packages it
// uses, because Node takes a millisecond for each of some 700 modules it finds, reads and links by itself. What a file
// imports late is in there too and runs when it is first asked for, so that it can never be missing then. Threads and the
// launcher's process get small files of their own. Packages with compiled parts stay packages, and so do those that few
// servers load. Tests and short verbs run dist/src, file by file: they load only what they need.
import { copyFileSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { argumentsOf } from "./program.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** By the name of its file in dist/program: what begins there, below dist/src. */
const beginnings = {
  main: "main.js",
  "launcher-helper": "git/launcher-helper.js",
  "verify-thread": "nostr/verify/pool.js",
  "text-thread": "web/code/colours/text-thread.js",
};

const external = ["@aws-sdk/*", "koffi", "lmdb", "pg", "secp256k1", "tiny-secp256k1"];

/**
 * A compiled file that looks for something beside itself finds it from where it would be in dist/src. One that starts itself
 * as a thread or a process starts its own file here.
 */
const ownPlaces = (compiled) => ({
  name: "own places",
  setup({ onLoad }) {
    onLoad({ filter: /\.js$/ }, ({ path }) => {
      const below = relative(compiled, path).replaceAll("\\", "/");
      if (below.startsWith("..")) return undefined;
      const text = readFileSync(path, "utf8");
      if (!text.includes("import.meta.url")) return undefined;
      const own = Object.entries(beginnings).find(([, beginning]) => beginning === below)?.[0];
      const place = own ? `${own}.cjs` : `../src/${below}`;
      return { contents: text.replaceAll("import.meta.url", `holdfastPlace(${JSON.stringify(place)})`), loader: "js" };
    });
  },
});

/** What packages bring along and this server never asks for: zod's other languages, and what prom-client traces with. */
const withoutUnused = {
  name: "without what is unused",
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /[\\/]zod[\\/]v4[\\/]locales[\\/]index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    }));
    onResolve({ filter: /^@opentelemetry\/api$/ }, ({ path }) => ({ path, namespace: "unused" }));
    onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: "" }));
  },
};

/**
 * As a script whose value is a function: start.cjs calls it. In ASCII, so that V8 keeps it in half the memory; what the bundler
 * leaves in templates is the only text that is not, and no template here is asked for its raw text.
 */
const asScript = (text) =>
  `(function (exports, require, module, __filename, __dirname, holdfastKeepCompiled) { ${text}})\n`.replace(
    /[^\0-\x7f]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

const banner = `"use strict";
const holdfastOneFile = __filename;
const holdfastPlace = (path) => require("node:url").pathToFileURL(require("node:path").join(__dirname, path)).href;`;

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

function numbersOf(segment) {
  const numbers = [];
  let [value, shift] = [0, 0];
  for (const letter of segment) {
    const digit = digits.indexOf(letter);
    value += (digit & 31) << shift;
    if (digit & 32) shift += 5;
    else {
      numbers.push(value & 1 ? -(value >>> 1) : value >>> 1);
      [value, shift] = [0, 0];
    }
  }
  return numbers;
}

/**
 * Which line of which source a place in the program was, for stacks in the log. `places` holds four numbers for each stretch
 * that came from one line, in order: its line and column here, the source, the line there.
 */
function linesOf({ sources, mappings }, outputFolder) {
  const places = [];
  const from = { source: 0, line: 0 };
  let last = "";
  for (const [index, text] of mappings.split(";").entries()) {
    let column = 0;
    for (const segment of text === "" ? [] : text.split(",")) {
      const [further, source = 0, line = 0] = numbersOf(segment);
      column += further;
      from.source += source;
      from.line += line;
      const there = `${from.source} ${from.line}`;
      if (there === last) continue;
      last = there;
      places.push(index + 1, column + 1, from.source, from.line + 1);
    }
  }
  return { sources: sources.map((source) => relative(root, resolve(outputFolder, source))), places };
}

/** `dist` holds `src`, compiled; `program` is made in it anew. */
async function bundle(dist) {
  const outdir = join(dist, "program");
  const compiled = realpathSync(join(dist, "src"));
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: Object.entries(beginnings).map(([out, path]) => ({ in: join(compiled, path), out })),
    outdir,
    outExtension: { ".js": ".cjs" },
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    target: "node20",
    // An import() of a package that stays one is a require(): it is found in the same way, without Node's second loader.
    supported: { "dynamic-import": false },
    external,
    banner: { js: banner },
    plugins: [ownPlaces(compiled), withoutUnused],
    sourcemap: "external",
    sourcesContent: false,
    legalComments: "none",
    // V8 keeps the text for as long as the server runs. Names stay, for stacks.
    minifyWhitespace: true,
    lineLimit: 200,
    logLevel: "error",
  });
  // Renamed into place: a start meanwhile finds the old ones or the new ones.
  const fresh = `${outdir}.${process.pid}`;
  rmSync(fresh, { recursive: true, force: true });
  mkdirSync(fresh, { recursive: true });
  for (const { path, text } of outputFiles) {
    const name = relative(outdir, path);
    if (name === "main.cjs") writeFileSync(join(fresh, "main.script"), asScript(text));
    else if (name === "main.cjs.map")
      writeFileSync(join(fresh, "main.lines.json"), JSON.stringify(linesOf(JSON.parse(text), dirname(path))));
    else if (!name.endsWith(".map")) writeFileSync(join(fresh, name), text);
  }
  copyFileSync(join(root, "scripts", "start-one-file.cjs"), join(fresh, "start.cjs"));
  rmSync(outdir, { recursive: true, force: true });
  renameSync(fresh, outdir);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = argumentsOf(
    `node scripts/bundle.mjs [--dist <folder>]   makes the program that people start out of the compiled files, in dist/program
                                            or in another folder that has them as src`,
    { dist: { type: "string" } },
  );
  await bundle(resolve(values.dist ?? join(root, "dist")));
}
