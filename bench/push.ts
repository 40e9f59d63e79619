// A maintainer's work on a whole server that is otherwise idle: a state event whose data is missing, to its OK, and the push
// that belongs to it, by stock git. Beside them, in the same run and turn by turn, one sync of the disk and the push of the same
// commit to `git http-backend`. What a push costs is counted too: processor time of the server and all it starts, and processes.

import { closeSync, fdatasyncSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { httpBackend } from "./http-backend.js";
import { type BenchServer, freePort, inFolder, startBenchServer } from "./processes.js";
import { type Benchmark, type BenchRow, milliseconds, percentile } from "./rows.js";
import { firstCommit, host } from "./scene.js";
import { git, Publisher, urlOf } from "./traffic-git.js";

const warmUp = 5;
const rounds = Number(process.env.BENCH_PUSHES ?? 60);

async function mustGit(cwd: string, ...args: string[]): Promise<void> {
  const { ok, text } = await git(cwd, ...args);
  if (!ok) throw new Error(`git ${args.join(" ")}: ${text}`);
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [number, T]> {
  const began = performance.now();
  const result = await work();
  return [performance.now() - began, result];
}

/** A file that is written and synced a page at a time. */
class DiskProbe {
  readonly #file: number;
  readonly #page = Buffer.alloc(4_096, 1);
  #at = 0;

  constructor(path: string) {
    this.#file = openSync(path, "w");
  }

  syncMs(): number {
    const began = performance.now();
    writeSync(this.#file, this.#page, 0, this.#page.length, this.#at);
    fdatasyncSync(this.#file);
    this.#at += this.#page.length;
    return performance.now() - began;
  }

  close(): void {
    closeSync(this.#file);
  }
}

/** Of a process and its children, those that have ended among them. */
function processorMs(pid: number): number {
  const ticks = (fields: readonly string[], from: number, to: number): number =>
    fields.slice(from, to).reduce((sum, field) => sum + Number(field), 0);
  let all = 0;
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8");
      // After the name, which may have spaces in it: state, parent, …; 11 to 14 are the times, 13 and 14 those of children that ended.
      const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
      if (Number(name) === pid || Number(fields[1]) === pid) all += ticks(fields, 11, 15);
    } catch {
      // It has just ended, and counts with its parent.
    }
  }
  return all * 10;
}

async function processesStarted({ port }: BenchServer): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(/^ngit_git_process_start_stall_seconds_count (\d+)/m.exec(text)?.[1] ?? Number.NaN);
}

const figures = (values: readonly number[]): string =>
  `p50 ${milliseconds(percentile(values, 0.5))}, p90 ${milliseconds(percentile(values, 0.9))}`;
const median = (values: readonly number[]): number => percentile(values, 0.5);

async function run(): Promise<BenchRow[]> {
  return inFolder(async (folder) => {
    const port = await freePort();
    const settings = { BENCH_POLICY: "grasp", NGIT_DOMAIN: `127.0.0.1:${port}`, NGIT_ALLOW_PRIVATE_ADDRESSES: "true" };
    const server = await startBenchServer(join(folder, "server"), settings, port);
    const backend = await httpBackend(join(folder, "backend"));
    const work = await firstCommit(join(folder, "work"));
    const [repository] = await host(1, [port], work);
    if (!repository) throw new Error("nothing is hosted");
    await mustGit(work, "push", "-q", backend.url, "main");
    // Younger than what was published to have it hosted.
    const last = new Map([[repository.secretHex, Math.floor(Date.now() / 1_000) - 43_200]]);
    const publisher = await Publisher.connect(port, undefined, last);
    const probe = new DiskProbe(join(folder, "probe"));
    const [syncs, states, ours, theirs, cpu]: number[][] = [[], [], [], [], []];
    let startedBefore = 0;
    for (let round = 0; round < warmUp + rounds; round++) {
      await writeFile(join(work, `file${round % 10}`), `round ${round}\n`);
      await mustGit(work, "add", "-A");
      await mustGit(work, "commit", "-q", "-m", `round ${round}`);
      const tip = (await readFile(join(work, ".git/refs/heads/main"), "utf8")).trim();
      const tags = [
        ["d", repository.identifier],
        ["refs/heads/main", tip],
        ["HEAD", "ref: refs/heads/main"],
      ];
      const syncMs = probe.syncMs();
      const event = publisher.signed(repository.secretHex, 30618, tags);
      const [stateMs, [ok, text]] = await timed(() => publisher.send(event));
      if (!ok || !text.startsWith("purgatory:")) throw new Error(`the state does not wait: ${text}`);
      const pushTo = async (url: string): Promise<number> =>
        (await timed(() => mustGit(work, "push", "-q", url, "main")))[0];
      const toBackend = round % 2 === 0 ? await pushTo(backend.url) : undefined;
      const beforeMs = processorMs(server.pid);
      const pushMs = await pushTo(urlOf(port, repository));
      const afterMs = processorMs(server.pid);
      const backendMs = toBackend ?? (await pushTo(backend.url));
      if (round === warmUp - 1) startedBefore = await processesStarted(server);
      if (round < warmUp) continue;
      syncs?.push(syncMs);
      states?.push(stateMs);
      ours?.push(pushMs);
      theirs?.push(backendMs);
      cpu?.push(afterMs - beforeMs);
    }
    const started = ((await processesStarted(server)) - startedBefore) / rounds;
    probe.close();
    publisher.client.close();
    backend.close();
    await server.close();
    const mean = (cpu ?? []).reduce((sum, ms) => sum + ms, 0) / rounds;
    return [
      {
        goal: "P7",
        work: "state event whose data is missing, to its OK",
        measured: figures(states ?? []),
        limit: `one sync of the disk ${figures(syncs ?? [])}`,
        target: "p50 ≤ 5 ms",
        met: median(states ?? []) <= 5,
      },
      {
        goal: "P7",
        work: "push of one small commit by stock git",
        measured: `${figures(ours ?? [])}; ${mean.toFixed(0)} ms CPU in the server, ${started.toFixed(1)} processes (with those in the background)`,
        limit: `git http-backend ${figures(theirs ?? [])}`,
        ratio: median(ours ?? []) / median(theirs ?? []),
        target: "≤ 1",
        met: median(ours ?? []) <= median(theirs ?? []),
      },
    ];
  });
}

export const pushBenchmark: Benchmark = { name: "push", run };
