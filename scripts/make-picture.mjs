// npm run picture — the picture in the README: a server is started on empty data, a few repositories are published to it with
// the program's own commands, and Chromium takes its first page.
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { argumentsOf } from "./program.mjs";

argumentsOf("npm run picture      takes docs/first-page.webp anew (needs Chromium: CHROMIUM_PATH, /usr/bin/chromium)");
const root = fileURLToPath(new URL("..", import.meta.url));
const target = join(root, "docs", "first-page.webp");
const size = { width: 1200, height: 830 };
const quality = 60;
const repositories = [
  ["logbook", "Logbook", "Keeps a ship's log in plain text, and draws the passage"],
  ["knots", "Knots", "How to tie, test and untie two hundred knots"],
  ["charts", "Charts", "Soundings of the outer harbour as vector tiles"],
  ["tidewater", "Tidewater", "Predicts tides from a handful of harmonic constants"],
];

const run = promisify(execFile);
const freePort = () =>
  new Promise((resolve) => {
    const holder = createServer().listen(0, "127.0.0.1", () => {
      const { port } = holder.address();
      holder.close(() => resolve(port));
    });
  });

const folder = mkdtempSync(join(tmpdir(), "holdfast-picture-"));
const port = await freePort();
const domain = `localhost:${port}`;
const environment = { PATH: process.env.PATH, HOME: folder };
const program = join(root, "dist/src/main.js");
const server = spawn(process.execPath, [program], {
  env: {
    ...environment,
    NGIT_DATA_PATH: join(folder, "data"),
    NGIT_BIND_ADDRESS: `127.0.0.1:${port}`,
    NGIT_DOMAIN: domain,
    NGIT_RELAY_NAME: "harbour.example",
    NGIT_RELAY_DESCRIPTION: "Tools for people who go to sea",
  },
  stdio: ["ignore", "ignore", "inherit"],
});
try {
  const isUp = async () => (await fetch(`http://${domain}/readyz`).catch(() => undefined))?.ok === true;
  for (const endMs = performance.now() + 60_000; !(await isUp()); ) {
    if (performance.now() > endMs || server.exitCode !== null) throw new Error("the server did not start");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const git = (place, ...args) =>
    run("git", ["-C", place, "-c", "user.name=Ada", "-c", "user.email=ada@example", ...args]);
  for (const [name, title, about] of repositories) {
    const place = join(folder, name);
    const args = ["init", place, "--server", domain, "--name", title, "--description", about];
    await run(process.execPath, [program, ...args, "--key", join(folder, `${name}.key`)], { env: environment });
    writeFileSync(join(place, "README.md"), `# ${title}\n\n${about}.\n`);
    await git(place, "commit", "-qam", "Say what it is");
    await run(process.execPath, [program, "publish", place, "--key", join(folder, `${name}.key`)], {
      env: environment,
    });
  }
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM_PATH || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu"],
  });
  const page = await browser.newPage({ viewport: size });
  await page.goto(`http://${domain}/`);
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality });
  await browser.close();
  const picture = Buffer.from(data, "base64");
  writeFileSync(target, picture);
  process.stdout.write(`${target} ${picture.length} bytes\n`);
} finally {
  server.kill("SIGTERM");
  await new Promise((resolve) => (server.exitCode === null ? server.once("exit", resolve) : resolve()));
  rmSync(folder, { recursive: true, force: true });
}
