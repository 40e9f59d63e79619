// Writes the reference pages and the example file from the program; `--check` only compares and fails on a difference.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";
import { setUp } from "./setup.mjs";

const { values } = argumentsOf(
  `node scripts/generate-docs.mjs [--check] [--json]      writes docs/reference and holdfast.example.conf from the program

--check compares only, and ends with 1 when one differs.`,
  { check: { type: "boolean", default: false }, json: { type: "boolean", default: false } },
);
setUp("server");
const root = fileURLToPath(new URL("..", import.meta.url));
const built = (path) => import(new URL(`../dist/src/${path}`, import.meta.url).href);
const { referencePage, exampleFile } = await built("config/describe.js");
const { cliPage, managementPage, refusalsPage } = await built("cli/reference-pages.js");

const pages = {
  "docs/reference/configuration.md": referencePage(),
  "docs/reference/cli.md": await cliPage(),
  "docs/reference/refusals.md": refusalsPage(),
  "docs/reference/management.md": managementPage(),
  "holdfast.example.conf": exampleFile(),
};

const differing = [];
for (const [name, text] of Object.entries(pages)) {
  const path = join(root, name);
  const isCurrent = existsSync(path) && readFileSync(path, "utf8") === text;
  if (isCurrent) continue;
  differing.push(name);
  if (values.check) {
    process.stderr.write(`${name} is not what the program says: run node scripts/generate-docs.mjs\n`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (!values.json) process.stdout.write(`${name} written\n`);
  }
}
if (values.json) process.stdout.write(`${JSON.stringify({ ok: !process.exitCode, differing })}\n`);
