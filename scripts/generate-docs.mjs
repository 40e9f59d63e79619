// Writes the reference pages and the example file from the program; `--check` only compares and fails on a difference.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { setUp } from "./setup.mjs";

setUp("server");
const root = fileURLToPath(new URL("..", import.meta.url));
const built = (path) => import(new URL(`../dist/src/${path}`, import.meta.url).href);
const { referencePage, exampleFile } = await built("config/describe.js");
const { cliPage, managementPage, refusalsPage } = await built("cli/reference-pages.js");

const pages = {
  "docs/reference/configuration.md": referencePage(),
  "docs/reference/cli.md": cliPage(),
  "docs/reference/refusals.md": refusalsPage(),
  "docs/reference/management.md": managementPage(),
  "holdfast.example.conf": exampleFile(),
};

for (const [name, text] of Object.entries(pages)) {
  const path = join(root, name);
  const isCurrent = existsSync(path) && readFileSync(path, "utf8") === text;
  if (isCurrent) continue;
  if (process.argv.includes("--check")) {
    process.stderr.write(`${name} is not what the program says: run node scripts/generate-docs.mjs\n`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    process.stdout.write(`${name} written\n`);
  }
}
