// npm run bench [-- name …]: runs the benchmarks, prints a table with the limit beside each figure, and writes
// bench/results.json. Figures from a shared machine move by a fifth from run to run: compare ratios.

import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { argumentsOf, calledWrongly, wholeNumber } from "../src/base/testing/program.js";
import { clusterBenchmark, usualSizes } from "./cluster.js";
import { fanoutBenchmark } from "./fanout.js";
import { gitBenchmark } from "./git.js";
import { growth } from "./growth/run.js";
import { idleBenchmark } from "./idle.js";
import { ingestBenchmark } from "./ingest.js";
import { loadBenchmark } from "./load.js";
import { mixedBenchmark } from "./mixed.js";
import { negentropyBenchmark } from "./negentropy.js";
import { pagesBenchmark } from "./pages.js";
import { peersOf, peersUsage } from "./peer-servers.js";
import { runPeers } from "./peers.js";
import { pushBenchmark } from "./push.js";
import { requestsBenchmark } from "./requests.js";
import type { Benchmark, BenchRow } from "./rows.js";
import { startBenchmark } from "./start.js";
import { storeBenchmark } from "./store.js";
import { sync } from "./sync.js";
import { verifyBenchmark } from "./verify.js";

const benchmarks: Benchmark[] = [
  ingestBenchmark,
  requestsBenchmark,
  fanoutBenchmark,
  negentropyBenchmark,
  gitBenchmark,
  pushBenchmark,
  sync,
  idleBenchmark,
  startBenchmark,
  verifyBenchmark,
  storeBenchmark,
  mixedBenchmark,
  loadBenchmark,
  pagesBenchmark,
  clusterBenchmark,
];

// Has arguments and an answer of its own kind.
if (process.argv[2] === "growth") process.exit(await growth());

/** Runs only when it is named: it starts whole servers, other people's too. */
const peersName = "peers";
const names = [...benchmarks.map(({ name }) => name), peersName].join(", ");
const { values, positionals: wanted } = argumentsOf(
  `npm run bench [-- name …] [--json]      all benchmarks, or these of: ${names}

npm run bench -- growth [curve …]        how cost grows with size; --help there lists its arguments

P8 (two servers converge) is sync; P9 (the sync core at its largest) is \`npm run simulate -- --scale\`. All goals and what
is done for them: docs/reference/benchmarks.md. The figures are written to bench/results.json too; --json prints them
instead of tables. cluster needs PostgreSQL; --events (${usualSizes.events}) and --repositories (${usualSizes.repositories}) say how many
of them a machine meets that joins it.

${peersUsage}`,
  {
    json: { type: "boolean", default: false },
    events: { type: "string" },
    repositories: { type: "string" },
    server: { type: "string", multiple: true, default: [] },
    command: { type: "string", multiple: true, default: [] },
    build: { type: "string", multiple: true, default: [] },
    works: { type: "string", default: "" },
  },
  true,
);
const sizes = {
  ...(values.events !== undefined && { events: wholeNumber("events", values.events, 1) }),
  ...(values.repositories !== undefined && { repositories: wholeNumber("repositories", values.repositories, 1) }),
};
const peers = peersOf(values);
if (peers.length > 1 && !wanted.includes(peersName)) calledWrongly("--server, --command and --build are for peers");
benchmarks.push({ name: peersName, run: () => runPeers(peers, values.works.split(",").filter(Boolean)) });
const unknown = wanted.filter((name) => !benchmarks.some((benchmark) => benchmark.name === name));
if (unknown.length > 0) calledWrongly(`No benchmark ${unknown.join(", ")}; there are: ${names}`);

function printTable(rows: readonly BenchRow[]): void {
  const others = [...new Set(rows.flatMap(({ beside }) => Object.keys(beside ?? {})))];
  const cells = rows.map((row) => [
    row.goal,
    row.work,
    row.measured,
    ...others.map((name) => row.beside?.[name] ?? ""),
    row.limit ?? "",
    row.ratio === undefined ? "" : row.ratio.toFixed(2),
    row.target ?? "",
    row.met === undefined ? "" : row.met ? "met" : "MISSED",
  ]);
  const table = [["goal", "work", "measured", ...others, "limit", "ratio", "target", ""], ...cells];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0))) ?? [];
  for (const line of table) {
    process.stdout.write(`${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}\n`);
  }
}

const results: Record<string, BenchRow[]> = {};
for (const benchmark of benchmarks.filter((b) =>
  wanted.length === 0 ? b.name !== peersName : wanted.includes(b.name),
)) {
  const missing = benchmark.missing?.();
  if (missing !== undefined) {
    process.stderr.write(`bench: ${benchmark.name}: NOT RUN: ${missing}\n`);
    process.exitCode = 1;
    continue;
  }
  // Above the number of cores, others are at work and wall-clock figures are theirs too.
  process.stderr.write(`bench: ${benchmark.name} (load ${loadavg()[0]?.toFixed(1)}) …\n`);
  const rows = await benchmark.run(sizes);
  results[benchmark.name] = rows;
  if (!values.json) printTable(rows);
}
if (Object.keys(results).length === 0) process.exit(1);
const answer = `${JSON.stringify({ node: process.version, cores: cpus().length, results }, null, 2)}\n`;
writeFileSync(new URL("../../bench/results.json", import.meta.url), answer);
if (values.json) process.stdout.write(answer);
