// The fault harness: the tests that kill a server at named points, with every point, then rounds of faults under load.
// Exit 1 when a promise was broken.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { argumentsOf, calledWrongly, wholeNumber } from "../../src/base/testing/program.js";
import { Random } from "../../src/store/testing/random.js";
import type { RoundResult } from "./rounds.js";
import type { Fault } from "./scene.js";

const usage = `npm run faults -- --rounds N      so many rounds (200), each with a fault; exit 1 when a promise was broken
                  --seed N        repeats the rounds of a run
                  --cluster       on three machines, a PostgreSQL and a pack store, which are killed, paused and taken away
                  --s3            with --cluster: the pack store is a bucket of an S3 server, not a directory; the server is
                                  killed, and stands still
                  --only WORD     only faults whose name contains it, and no kills at every named point first
                  --json          the results as JSON, at the end`;

const { values } = argumentsOf(usage, {
  rounds: { type: "string", default: "200" },
  seed: { type: "string" },
  only: { type: "string", default: "" },
  cluster: { type: "boolean", default: false },
  s3: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : wholeNumber("seed", values.seed);
const rounds = wholeNumber("rounds", values.rounds, 1);
if (values.s3 && !values.cluster) calledWrongly("--s3 is said of a cluster: add --cluster");
// Whoever only asks what there is need not wait until the server's rooms are loaded.
const [{ faultPlan }, { runRounds }] = await Promise.all([import("./faults.js"), import("./rounds.js")]);

const out = (text: string): void => void process.stdout.write(`${text}\n`);

function* planned(): Generator<Fault> {
  let passedOver = 0;
  for (const fault of faultPlan(new Random(seed))) {
    if (fault.family.includes(values.only)) {
      passedOver = 0;
      yield fault;
    } else if (++passedOver > 1_000) calledWrongly(`No fault is called '${values.only}'`);
  }
}

function progress({ round, family, what, isDone, violations, logFile, ms }: RoundResult): void {
  const sign = violations.length > 0 ? "BROKEN" : isDone ? "ok" : "missed";
  out(`${String(round).padStart(4)} ${sign.padEnd(6)} ${String(ms).padStart(6)} ms  ${family}: ${what}`);
  for (const violation of violations) out(`     ! ${violation}`);
  if (logFile) out(`     the server's log: ${logFile}`);
}

interface Line {
  readonly fault: string;
  rounds: number;
  struck: number;
  violations: number;
}

function tableOf(results: readonly RoundResult[]): Line[] {
  const lines = new Map<string, Line>();
  for (const { family, isDone, violations } of results) {
    const line = lines.get(family) ?? { fault: family, rounds: 0, struck: 0, violations: 0 };
    line.rounds++;
    if (isDone) line.struck++;
    line.violations += violations.length;
    lines.set(family, line);
  }
  return [...lines.values()].sort((a, b) => a.fault.localeCompare(b.fault));
}

const killTests = ["faults/kill", "store/kill", "stories/housekeeping", "stories/prs-restart"];

/** Their report goes to stderr: stdout is the rounds'. */
async function areKillTestsGreen(): Promise<boolean> {
  const files = killTests.map((name) => fileURLToPath(new URL(`../${name}.test.js`, import.meta.url)));
  const child = spawn(process.execPath, ["--enable-source-maps", "--test", "--test-concurrency=1", ...files], {
    env: { ...process.env, HOLDFAST_FAULTS: "all" },
    stdio: ["ignore", 2, 2],
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return code === 0;
}

const onRound = values.json ? {} : { onRound: progress };

async function clusterRounds(): Promise<RoundResult[]> {
  const [{ clusterFaults, runClusterRounds }, { cannotHave }] = await Promise.all([
    import("../cluster/rounds.js"),
    import("../cluster/pack-place.js"),
  ]);
  const packs = values.s3 ? "a bucket of S3" : "a directory";
  if (cannotHave(packs)) {
    calledWrongly("There is no S3 server: npm run test:cluster -- --install-only builds one, or S3_SERVER names it");
  }
  if (!clusterFaults(packs).some(({ family }) => family.includes(values.only))) {
    calledWrongly(`No fault of a cluster is called '${values.only}'`);
  }
  return await runClusterRounds({ seed, rounds, packs, only: values.only, ...onRound });
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
// Says so before anything is started when there is no such fault.
if (!values.cluster) planned().next();
const isShort = values.cluster || values.only !== "";
const killsAtPoints = isShort ? "not run" : (await areKillTestsGreen()) ? "ok" : "failed";
if (!values.json) out(`kills at every named point: ${killsAtPoints}\nseed ${seed}, ${rounds} rounds`);
const begunMs = performance.now();
const results = values.cluster ? await clusterRounds() : await runRounds({ seed, rounds, plan: planned(), ...onRound });
const seconds = Math.round((performance.now() - begunMs) / 100) / 10;
const violations = results.reduce((sum, result) => sum + result.violations.length, 0);
const table = tableOf(results);
const shown = { killsAtPoints, seed, rounds: results.length, seconds, violations, table, results };
if (values.json) out(JSON.stringify(shown, null, 2));
else {
  out(`\n${"rounds".padStart(6)} ${"struck".padStart(6)} ${"broken".padStart(6)}  fault`);
  for (const line of table) {
    out(
      `${[line.rounds, line.struck, line.violations].map((count) => String(count).padStart(6)).join(" ")}  ${line.fault}`,
    );
  }
  out(`${results.length} rounds in ${seconds} s, ${violations} violations, seed ${seed}`);
}
process.exitCode = violations > 0 || killsAtPoints === "failed" ? 1 : 0;
