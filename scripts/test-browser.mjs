// npm run test:browser — the suites that need a browser. Uses Debian's Chromium through playwright-core; downloads none.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf } from "./program.mjs";
import { runTests } from "./run-tests.mjs";

const { values } = argumentsOf(
  `npm run test:browser [-- --json]      the pages in Chromium (CHROMIUM_PATH, /usr/bin/chromium)`,
  { json: { type: "boolean" } },
);
const root = fileURLToPath(new URL("..", import.meta.url));
const candidates = [process.env.CHROMIUM_PATH, "/usr/bin/chromium", "/usr/bin/chromium-browser"];
const chromium = candidates.find((path) => path !== undefined && path !== "" && existsSync(path));
if (!chromium) {
  process.stderr.write("test:browser needs Chromium: apt-get install chromium, or set CHROMIUM_PATH to a browser.\n");
  process.exit(1);
}
const folder = join(root, "dist", "test", "browser");
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".browser.js"))
  .map((name) => join(folder, name));
process.chdir(root);
process.env.CHROMIUM_PATH = chromium;
runTests({ files, concurrency: 1, json: values.json });
