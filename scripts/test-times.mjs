// `npm test -- --times`: the processor time of each test process and of the processes that it started and waited for.
// Wall time says little on a machine that does other things as well.
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";

const variable = "HOLDFAST_TEST_TIMES";
const ticksPerSecond = 100;

// Loaded into a test process: it writes a line as it ends. Programs that a test starts are counted with the test.
const file = process.env[variable];
if (file !== undefined) {
  delete process.env[variable];
  process.once("exit", () => {
    const { user, system } = process.cpuUsage();
    const line = { program: process.argv[1], own: (user + system) / 1e6, started: secondsOfStarted() };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  });
}

function secondsOfStarted() {
  try {
    // After the name in brackets: the state and ten others, utime, stime, cutime, cstime.
    const fields = readFileSync("/proc/self/stat", "utf8").replace(/^.*\)/s, "").trim().split(" ");
    return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond;
  } catch {
    return 0;
  }
}

/** Has every test process that starts from now on measured; `tell` gets the report when this process ends. */
export function timesOf(root, tell) {
  const folder = mkdtempSync(join(tmpdir(), "times-"));
  const lines = join(folder, "lines");
  process.env[variable] = lines;
  process.execArgv.push("--import", import.meta.url);
  // Before the temporary folder is removed.
  process.prependOnceListener("exit", () => {
    const rows = readFileSync(lines, { encoding: "utf8", flag: "a+" })
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line))
      .sort((one, other) => other.own + other.started - one.own - one.started);
    rmSync(folder, { recursive: true, force: true });
    const row = (own, started, name) =>
      `${[own + started, own, started].map((seconds) => seconds.toFixed(1).padStart(8)).join("")}  ${name}\n`;
    const sum = (field) => rows.reduce((total, each) => total + each[field], 0);
    tell("     all     own started  (processor seconds)\n");
    for (const { program, own, started } of rows) tell(row(own, started, relative(root, program)));
    tell(row(sum("own"), sum("started"), "all test processes"));
  });
}
