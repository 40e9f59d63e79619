// npm run attack: every attack of security.md's rows 32–55 at once against a server with default settings, while an honest
// client from another address reads, publishes, pushes and clones. Exit 1 when the honest client waited too long, the
// server took too much memory, or something acknowledged was lost.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inFolder, nextMessage, programPath } from "../../bench/processes.js";
import { mebibytes, milliseconds } from "../../bench/rows.js";
import { Sampling } from "../../bench/sampling.js";
import { firstCommit, host, missingEvents, missingRefs } from "../../bench/scene.js";
import type { HostedRepository, Measured, TrafficOrder, TrafficResult } from "../../bench/traffic.js";
import { git } from "../../bench/traffic-git.js";
import { argumentsOf, wholeNumber } from "../../src/base/testing/program.js";
import { freePort } from "../harness/free-port.js";
import { until } from "../harness/server.js";
import { DiskWatch } from "./disk-watch.js";
import { httpAttacks } from "./http-attacks.js";
import { relayAttacks } from "./relay-attacks.js";
import type { Target } from "./stranger.js";
import type { AttackOrder, AttackResult } from "./strangers-program.js";

const usage = `npm run attack -- --seconds N     all attacks at once for so long (300); exit 1 when a bound was broken
                  --only WORD     only attacks whose name contains it ("nothing": the honest client alone)
                  --figures-told  times and memory are printed and not judged: for a machine that does other work too
                  --json          the result as JSON

Everything stays on this machine's loopback network: attackers have addresses 127.0.0.2 and up, the honest client 127.0.0.1.`;

const { values } = argumentsOf(usage, {
  seconds: { type: "string", default: "300" },
  only: { type: "string", default: "" },
  "figures-told": { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});
const seconds = wholeNumber("seconds", values.seconds, 1);
const honestRepositories = 10;
const bounds = { p99Ms: 250, pushP99Ms: 2_000, bytes: 512 * 2 ** 20 };
const boundOf = (operation: string): number => (operation.startsWith("git ") ? bounds.pushP99Ms : bounds.p99Ms);

const say = (text: string): void => void (values.json ? process.stderr : process.stdout).write(`${text}\n`);

/** Default settings but for where it is; and loopback may be dialled, or hostile peers could not be followed at all. */
async function startServer(folder: string, port: number): Promise<ChildProcess> {
  const main = fileURLToPath(new URL("../../src/main.js", import.meta.url));
  const child = spawn(process.execPath, [main, "serve"], {
    env: {
      PATH: process.env.PATH ?? "",
      HOME: folder,
      NGIT_BIND_ADDRESS: `127.0.0.1:${port}`,
      NGIT_DOMAIN: `127.0.0.1:${port}`,
      NGIT_DATA_PATH: join(folder, "data"),
      NGIT_ALLOW_PRIVATE_ADDRESSES: "true",
      NGIT_LOG_LEVEL: "error",
    },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const answers = async (): Promise<boolean> =>
    child.exitCode !== null || (await fetch(`http://127.0.0.1:${port}/`).catch(() => undefined))?.status === 200;
  if (!(await until(answers)) || child.exitCode !== null) throw new Error("the server did not start");
  return child;
}

/** What the attackers host themselves: a README that is slow to render and a blob that does not compress. */
async function hostOfAttackers(port: number, folder: string): Promise<{ own: HostedRepository; ownTip: string }> {
  const work = await firstCommit(join(folder, "attackers"));
  writeFileSync(
    join(work, "README.md"),
    `# x\n\n${" ".repeat(65_000)}x\n\n${"[".repeat(20_000)}${"*a ".repeat(20_000)}`,
  );
  const noise = Buffer.from(Array.from({ length: 20_000_000 }, () => Math.random() * 256));
  writeFileSync(join(work, "noise"), noise);
  await git(work, "add", ".");
  await git(work, "commit", "-q", "-m", "bait");
  const [own] = await host(1, [port], work);
  if (!own) throw new Error("the attackers could not host their repository");
  return { own, ownTip: (await git(work, "rev-parse", "HEAD")).text.trim() };
}

async function begin(port: number, repositories: readonly HostedRepository[], folder: string): Promise<ChildProcess> {
  const child = fork(programPath("traffic-load"));
  const ready = nextMessage<string>(child);
  const order: TrafficOrder = {
    port,
    seconds,
    repositories,
    traffic: [
      { role: "events", connections: 2, perSecond: 5 },
      // Not issues: the newest are the attackers', and reading megabytes takes as long as it takes.
      { role: "requests", connections: 2, perSecond: 10, kinds: [30617, 30618] },
      { role: "live", sockets: 5, subscriptions: 10 },
      { role: "pushes", perMinute: 30, folder: join(folder, "pushes") },
      { role: "clones", perMinute: 30, folder: join(folder, "clones") },
    ],
  };
  child.send(order);
  await ready;
  return child;
}

function attack(target: Target, share: AttackOrder["share"]): Promise<AttackResult> {
  const child = fork(fileURLToPath(new URL("./strangers-program.js", import.meta.url)));
  const order: AttackOrder = { target, seconds, share, only: values.only };
  child.send(order);
  return nextMessage<AttackResult>(child);
}

function problemsOf(measured: readonly Measured[], mostBytes: number, lost: number): string[] {
  const late = values["figures-told"] ? [] : measured.filter(({ operation, p99Ms }) => !(p99Ms <= boundOf(operation)));
  const failed = measured.filter(({ failures }) => failures > 0);
  return [
    ...late.map(({ operation, p99Ms }) => `${operation}: p99 ${milliseconds(p99Ms)} of ${boundOf(operation)} ms`),
    ...failed.map(({ operation, failures }) => `${operation}: ${failures} failed`),
    ...(mostBytes > bounds.bytes && !values["figures-told"]
      ? [`the server took ${mebibytes(mostBytes)} of ${mebibytes(bounds.bytes)}`]
      : []),
    ...(lost > 0 ? [`${lost} acknowledged events or refs are lost`] : []),
  ];
}

async function run(folder: string): Promise<boolean> {
  const port = await freePort();
  const server = await startServer(folder, port);
  const ended = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  process.once("exit", () => server.kill("SIGKILL"));
  const repositories = await host(honestRepositories, [port], await firstCommit(join(folder, "first")));
  const target: Target = { port, repositories, ...(await hostOfAttackers(port, folder)) };
  mkdirSync(join(folder, "work"));
  const honest = await begin(port, repositories, join(folder, "work"));
  say(`${relayAttacks.length + httpAttacks.length} attacks and hostile peers for ${seconds} s …`);
  const sampling = new Sampling({ port, pid: server.pid ?? 0 });
  const disk = new DiskWatch(join(folder, "disk-watch"));
  const traffic = nextMessage<TrafficResult>(honest);
  honest.send("go");
  const shares = values.only === "" ? (["relay", "http", "peers"] as const) : (["relay", "http"] as const);
  const results = await Promise.all(shares.map((share) => attack(target, share)));
  const { measured, acknowledged, refs } = await traffic;
  const samples = await sampling.stop();
  const disksOwn = await disk.stop();
  let lost = (await missingEvents(port, acknowledged)) + (await missingRefs(port, repositories, refs));
  server.kill("SIGKILL");
  await ended;
  const again = await startServer(folder, port);
  lost += (await missingEvents(port, acknowledged)) + (await missingRefs(port, repositories, refs));
  again.kill("SIGTERM");
  await new Promise((resolve) => again.once("exit", resolve));

  const mostBytes = Math.max(...samples.map(({ ownBytes }) => ownBytes));
  const worstLoopMs = Math.max(...samples.map(({ loopP99Ms }) => loopP99Ms));
  const attempts = Object.assign({}, ...results.map((result) => result.attempts)) as Record<string, number>;
  const problems = problemsOf(measured, mostBytes, lost);
  if (values.json) {
    const answer = {
      seconds,
      measured,
      attempts,
      mostBytes,
      worstLoopMs,
      disk: disksOwn,
      acknowledged: acknowledged.length,
      lost,
      problems,
    };
    process.stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
    return problems.length === 0;
  }
  for (const [name, count] of Object.entries(attempts)) say(`${String(count).padStart(8)} attempts  ${name}`);
  for (const { operation, count, failures, p50Ms, p99Ms } of measured) {
    say(`honest: ${operation}: p50 ${milliseconds(p50Ms)}, p99 ${milliseconds(p99Ms)} (${count}, ${failures} failed)`);
  }
  say(
    `server: at most ${mebibytes(mostBytes)} of its own; event loop's p99 in its worst 2 s ${milliseconds(worstLoopMs)}`,
  );
  const { p50Ms, p99Ms, worstMs } = disksOwn;
  say(
    `disk: one write of 4 KiB with its sync: p50 ${milliseconds(p50Ms)}, p99 ${milliseconds(p99Ms)}, worst ${milliseconds(worstMs)}`,
  );
  say(`lost of ${acknowledged.length} events and ${Object.keys(refs).length} refs, also after kill -9: ${lost}`);
  for (const problem of problems) say(`BROKEN: ${problem}`);
  return problems.length === 0;
}

process.exitCode = (await inFolder(run)) ? 0 : 1;
