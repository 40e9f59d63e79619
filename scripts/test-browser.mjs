// npm run test:browser — the suites that need a browser. Uses Debian's Chromium through playwright-core; downloads none.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

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
const result = spawnSync(process.execPath, ["--test", "--enable-source-maps", "--test-concurrency=1", ...files], {
  cwd: root,
  stdio: "inherit",
  env: { ...process.env, CHROMIUM_PATH: chromium },
});
process.exit(result.status ?? 1);
