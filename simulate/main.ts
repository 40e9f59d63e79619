// Runs the simulator from the command line. Seeds are spread over the machine's cores, each core a worker thread.

import { writeFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { argumentsOf, calledWrongly, wholeNumber } from "../src/base/testing/program.js";
import { breaks } from "./breaks.js";
import type { NetworkSize } from "./network/network.js";
import { type NetworkResult, runNetwork } from "./network/run.js";
import { type RunOptions, type RunResult, run } from "./run.js";
import { scaleRuns } from "./scale.js";
import { shrink, traceOf } from "./shrink.js";

const usage = `npm run simulate -- --seed N --seeds K --hours H   K seeds from N on (1 and 1); exit 1 on a broken property
                    --nightly                      many seeds with 48 troubled hours each
                    --scale                        the sizes of the specification, with memory and time
                    --network N                    N servers that share repositories (--repositories R, 20000): a start,
                                                   a day, a restart, a partition; --only-start for the first alone
                    --break NAME                   with a deliberate mistake, which must be caught
                    --trace FILE                   writes what went in and out for the first seed
                    --json                         the results as JSON`;

interface Work {
  readonly options: Omit<RunOptions, "seed" | "trace">;
}

interface NetworkWork {
  readonly size: NetworkSize;
  readonly onlyStart: boolean;
}

type NetworkMessage = { readonly progress: string } | { readonly result: NetworkResult };

async function workOnNetwork({ size, onlyStart }: NetworkWork): Promise<void> {
  const say = (message: NetworkMessage): void => parentPort!.postMessage(message);
  say({ result: await runNetwork(size, (progress) => say({ progress }), onlyStart) });
}

/** In a thread of its own, which may use more memory than Node gives to a program: a large network needs ten gigabytes. */
function networkInThread(wish: NetworkWork, progress: (text: string) => void): Promise<NetworkResult> {
  const maxOldGenerationSizeMb = Math.floor((totalmem() * 0.55) / 2 ** 20);
  const worker = new Worker(fileURLToPath(import.meta.url), {
    workerData: wish,
    resourceLimits: { maxOldGenerationSizeMb },
  });
  return new Promise((resolve, reject) => {
    worker.on("message", (message: NetworkMessage) => {
      if ("result" in message) resolve(message.result);
      else progress(message.progress);
    });
    worker.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ERR_WORKER_OUT_OF_MEMORY") reject(error);
      else calledWrongly(`This network needs more than ${maxOldGenerationSizeMb} MiB: fewer --repositories need less`);
    });
  });
}

/** Asks for one seed after the other, so that slow seeds do not pile up on one core. */
function work({ options }: Work): void {
  parentPort!.on("message", (seed: number | undefined) => {
    if (seed === undefined) parentPort!.close();
    else parentPort!.postMessage(run({ ...options, seed }));
  });
}

async function runSeeds(first: number, count: number, options: Work["options"]): Promise<RunResult[]> {
  const results: RunResult[] = [];
  let next = first;
  const end = first + count;
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(fileURLToPath(import.meta.url), { workerData: { options } satisfies Work });
      const give = (): void => worker.postMessage(next < end ? next++ : undefined);
      worker.on("message", (result: RunResult) => {
        results.push(result);
        give();
      });
      worker.on("error", reject);
      worker.on("exit", () => resolve());
      give();
    });
  await Promise.all(Array.from({ length: Math.min(count, availableParallelism()) }, one));
  return results.sort((a, b) => a.seed - b.seed);
}

const print = (text: string): void => void process.stdout.write(`${text}\n`);

function report(results: readonly RunResult[], seconds: number): void {
  const sum = (of: (result: RunResult) => number): number => results.reduce((total, result) => total + of(result), 0);
  const hours = sum((result) => result.simulatedHours);
  print(
    `seeds ${results.length}   simulated hours ${hours.toFixed(0)}   ${seconds.toFixed(1)} s   ${(results.length / seconds).toFixed(1)} seeds/s   ${(hours / seconds).toFixed(0)} simulated hours/s`,
  );
  print(
    `inputs ${sum((result) => result.steps)}   dials ${sum((result) => result.dials)}   requests ${sum((result) => result.requests)}   offers ${sum((result) => result.offers)}   batches confirmed ${sum((result) => result.confirmedBatches)}   events stored ${sum((result) => result.stored)}`,
  );
}

function explain(options: RunOptions, failed: RunResult): void {
  print(`seed ${failed.seed}: ${failed.problems.length} broken`);
  for (const problem of failed.problems.slice(0, 10)) print(`  ${problem}`);
  const small = shrink(options, failed);
  print(`shortest found in ${small.runs} runs: ${JSON.stringify(small.size)}: ${small.result.problems[0]}`);
  for (const line of traceOf(options, small.size)) print(`  ${line}`);
}

function runScale(json: boolean): boolean {
  let within = true;
  for (const scaled of scaleRuns) {
    const result = scaled();
    within &&= result.memoryMib < 512 && result.unconfirmed === 0;
    print(
      json
        ? JSON.stringify(result)
        : `${result.name}: ${result.seconds.toFixed(1)} s, ${result.memoryMib.toFixed(0)} MiB (process ${result.rssMib.toFixed(0)}), one event ${result.issueMs.median.toFixed(3)} ms median ${result.issueMs.worst.toFixed(2)} worst, live filters ${result.liveFilters}, rotating roots ${result.rotatingRoots}, unconfirmed ${result.unconfirmed}, requests ${result.requests}${result.outbox ? `, outbox ${JSON.stringify(result.outbox)}` : ""}`,
    );
  }
  return within;
}

/** A repository has an event a day in the mean, and a push every fourth. */
async function showNetwork(
  size: Pick<NetworkSize, "seed" | "servers" | "repositories">,
  onlyStart: boolean,
  json: boolean,
): Promise<number> {
  const eventsADay = size.repositories;
  const progress = (text: string): void => void (json ? process.stderr.write(`${text}\n`) : print(text));
  const whole = { ...size, eventsADay, statesADay: eventsADay / 4 };
  const result = await networkInThread({ size: whole, onlyStart }, progress);
  const { servers, repositories, copies, largest, pairs, seconds, steps, rssMib } = result;
  print(
    json
      ? JSON.stringify(result)
      : `${servers} servers, ${repositories} repositories of ${copies.toFixed(1)} copies (the largest server has ${largest}), ${pairs} links; simulated in ${seconds.toFixed(0)} s, ${steps} inputs, ${rssMib.toFixed(0)} MiB`,
  );
  const last = result.phases.at(-1)!;
  return last.events.unfinished + last.states.unfinished === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  const { values } = argumentsOf(usage, {
    seed: { type: "string", default: "1" },
    seeds: { type: "string", default: "1" },
    hours: { type: "string" },
    break: { type: "string" },
    trace: { type: "string" },
    nightly: { type: "boolean", default: false },
    scale: { type: "boolean", default: false },
    network: { type: "string" },
    repositories: { type: "string", default: "20000" },
    "only-start": { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  });
  if (values.break !== undefined && !Object.hasOwn(breaks, values.break)) {
    calledWrongly(`No such mistake; known: ${Object.keys(breaks).join(", ")}`);
  }
  const seed = wholeNumber("seed", values.seed);
  const seeds = Math.max(values.nightly ? 3000 : 1, wholeNumber("seeds", values.seeds, 1));
  const hours = values.hours === undefined ? (values.nightly ? 48 : undefined) : wholeNumber("hours", values.hours);
  if (values.network !== undefined) {
    const servers = wholeNumber("network", values.network, 2);
    const repositories = wholeNumber("repositories", values.repositories, 1);
    return showNetwork({ seed, servers, repositories }, values["only-start"], values.json);
  }
  if (values.scale) return runScale(values.json) ? 0 : 1;
  const options = {
    ...(hours !== undefined && { hours }),
    ...(values.break !== undefined && { broken: values.break }),
  };
  const startMs = performance.now();
  const results = await runSeeds(seed, seeds, options);
  const seconds = (performance.now() - startMs) / 1000;
  if (!values.json) report(results, seconds);
  if (values.trace !== undefined) {
    const lines: string[] = [];
    run({ ...options, seed, trace: (line) => lines.push(line) });
    writeFileSync(values.trace, lines.join("\n"));
  }
  const failed = results.filter((result) => result.problems.length > 0);
  if (values.json) print(JSON.stringify({ ok: failed.length === 0, seconds, results }));
  if (failed.length === 0) return 0;
  if (values.json) return 1;
  print(
    `${failed.length} of ${results.length} seeds broke a property: ${failed
      .slice(0, 20)
      .map((result) => result.seed)
      .join(", ")}`,
  );
  explain({ ...options, seed: failed[0]!.seed }, failed[0]!);
  return 1;
}

if (isMainThread) process.exitCode = await main();
else {
  const wish = workerData as Work | NetworkWork;
  if ("size" in wish) await workOnNetwork(wish);
  else work(wish);
}
