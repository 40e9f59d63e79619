// P5, P6 and P7 of the speed goals: advertisements, starting git, clones, pushes, many refs. Prints what it measured
// beside the limit measured in the same run. Per-IP and per-repository limits are raised so that they do not measure
// themselves. `node dist/bench/git.js [p5 p6 p7]`.

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request as httpRequest } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { isMainThread, Worker, workerData } from "node:worker_threads";
import { systemClock } from "../src/base/clock.js";
import { defaultConfig } from "../src/config/testing/default-config.js";
import { asNpub, type Npub, RepositoryAddress } from "../src/git/address.js";
import { askCapabilities } from "../src/git/advertisement.js";
import { GitHttp } from "../src/git/http.js";
import { Launcher } from "../src/git/launcher.js";
import type { CandidateState, PushAuthority } from "../src/git/push-types.js";
import { Repositories } from "../src/git/repositories.js";
import { Git } from "../src/git/run.js";
import type { EventId, Pubkey } from "../src/nostr/event.js";
import type { Oid, RefName } from "../src/nostr/nip34.js";
import { createMemoryStore } from "../src/store/memory/memory-store.js";
import { httpBackend } from "./http-backend.js";
import type { Benchmark, BenchRow } from "./rows.js";

const npub = asNpub(`npub1${"q".repeat(58)}`) as Npub;
const owner = "1".repeat(64) as Pubkey;
const env = {
  PATH: process.env.PATH ?? "/usr/bin:/bin",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@b",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@b",
};
const pkt = (text: string): string => (text.length + 4).toString(16).padStart(4, "0") + text;
const zero = "0".repeat(40);

function git(cwd: string, args: readonly string[], input: string | Buffer = ""): Buffer {
  const result = spawnSync("git", args, { cwd, env, input, maxBuffer: 2 ** 30 });
  if (result.status !== 0) throw new Error(`git ${args[0]}: ${String(result.stderr)}`);
  return result.stdout;
}

const percentile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? 0;
const median = (values: readonly number[]): number => percentile(values, 0.5);

class Bench {
  readonly rows: BenchRow[] = [];
  candidates: CandidateState[] = [];
  readonly startStalls: number[] = [];

  private constructor(
    readonly folder: string,
    readonly launcher: Launcher,
    readonly git: Git,
    readonly repositories: Repositories,
    readonly origin: string,
    readonly close: () => Promise<void>,
  ) {}

  static async start(): Promise<Bench> {
    const folder = await mkdtemp(join(tmpdir(), "git-bench-"));
    const launcher = new Launcher();
    const stalls: number[] = [];
    const found = await Git.find(launcher, { onStart: (stallMs) => void stalls.push(stallMs) });
    const store = createMemoryStore({ clock: systemClock });
    const repositories = new Repositories({ gitDataPath: join(folder, "git"), git: found, clock: systemClock, store });
    let self: Bench | undefined;
    const authority = async (): Promise<PushAuthority> => ({
      strict: false,
      mark: undefined,
      candidates: self?.candidates ?? [],
      nostrEvents: new Map(),
      unclaimed: { ok: true, maxBytes: 1 },
    });
    const wide = { total: 64, perRepository: 64, perIp: 64, maxQueued: 64 };
    const http = new GitHttp({
      repositories,
      capabilities: await askCapabilities(found),
      clock: systemClock,
      served: {
        lookUp: (_npub, identifier) => ({ address: RepositoryAddress.of(owner, npub, identifier) }),
        beginPush: (address) => ({
          authority,
          locked: (work) => repositories.withLocks([address], work),
          keepAside: async () => undefined,
          abandon: async () => undefined,
          release: async ({ updates }) => {
            await repositories.open(address).updateRefs(updates);
            return true;
          },
          follow: async () => ({ messages: [] }),
          end: async () => undefined,
        }),
      },
      live: {
        current: defaultConfig({
          gitPackConcurrent: wide.total,
          gitPackConcurrentPerRepository: wide.perRepository,
          gitPackConcurrentPerIp: wide.perIp,
          gitPackQueue: wide.maxQueued,
          gitPackCacheBytes: 2 * 2 ** 30,
        }),
      },
      pushTurns: wide,
      cacheDirectory: join(folder, "answers"),
    });
    const server = createServer((message, response) => {
      const [localPath = "", query = ""] = (message.url ?? "").split("?");
      void http.handle({ message, localPath, query: new URLSearchParams(query), ip: "bench" }, response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    self = new Bench(folder, launcher, found, repositories, origin, async () => {
      server.closeAllConnections();
      server.close();
      await http.close();
      await launcher.close();
      await rm(folder, { recursive: true, force: true });
    });
    self.startStalls.length = 0;
    Object.assign(self, { startStalls: stalls });
    return self;
  }

  /** Of the server and every git it ran; the clients are processes of their own. */
  cpuMs(): number {
    const { user, system } = process.cpuUsage();
    const text = readFileSync(`/proc/${this.launcher.helperPid}/stat`, "utf8");
    const [own, ownSystem, git, gitSystem] = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 15)
      .map(Number);
    const launcher = (own ?? 0) + (ownSystem ?? 0) + (git ?? 0) + (gitSystem ?? 0);
    return (user + system) / 1_000 + launcher * 10;
  }

  row(goal: string, work: string, measured: string): void {
    this.rows.push({ goal, work, measured });
  }

  url = (identifier: string): string => `${this.origin}/${npub}/${identifier}.git`;

  async repository(identifier: string) {
    return await this.repositories.create(RepositoryAddress.of(owner, npub, identifier));
  }

  async workingCopy(name: string): Promise<string> {
    const cwd = join(this.folder, name);
    await mkdir(cwd, { recursive: true });
    git(cwd, ["init", "-q", "-b", "main"]);
    return cwd;
  }
}

async function p5(bench: Bench): Promise<void> {
  const repository = await bench.repository("p5");
  const work = await bench.workingCopy("p5");
  await writeFile(join(work, "f"), "x");
  git(work, ["add", "-A"]);
  git(work, ["commit", "-qm", "x"]);
  git(work, ["push", "-q", repository.directory, "main"]);
  await repository.updateRefs(
    Array.from({ length: 20 }, (_, i) => ({
      ref: `refs/heads/b${i}` as RefName,
      to: git(work, ["rev-parse", "HEAD"]).toString().trim() as Oid,
    })),
  );
  const path = `/${npub}/p5.git`;
  const lsRefs = `${pkt("command=ls-refs\n")}${pkt("object-format=sha1")}0001${pkt("peel\n")}${pkt("symrefs\n")}${pkt("ref-prefix refs/heads/\n")}0000`;
  const requests = {
    "info/refs": `GET ${path}/info/refs?service=git-upload-pack HTTP/1.1\r\nHost: x\r\n\r\n`,
    "ls-refs": `POST ${path}/git-upload-pack HTTP/1.1\r\nHost: x\r\nGit-Protocol: version=2\r\nContent-Length: ${lsRefs.length}\r\n\r\n${lsRefs}`,
  };
  for (const [name, request] of Object.entries(requests)) {
    const before = performance.eventLoopUtilization();
    const answered = await load(bench.origin, request, 4_000);
    const { utilization } = performance.eventLoopUtilization(before);
    const rate = answered / 4;
    bench.row(
      "P5",
      `${name}, 21 refs, 32 connections, over HTTP`,
      `${Math.round(rate)}/s, ${Math.round(rate / utilization)}/s a core`,
    );
  }
  const ballast = Buffer.alloc(2 ** 30, 1);
  {
    const rss = "1 GiB RSS";
    bench.startStalls.length = 0;
    const begun = performance.now();
    for (let i = 0; i < 200; i++) await bench.git.run(["version"]);
    const perSecond = 200 / ((performance.now() - begun) / 1000);
    const [p50, p99] = [median(bench.startStalls), percentile(bench.startStalls, 0.99)];
    bench.row(
      "P5",
      `starting git at ${rss}: main thread's own time`,
      `p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms (${Math.round(perSecond)} runs/s)`,
    );
    const own: number[] = [];
    for (let i = 0; i < 20; i++) {
      const at = performance.now();
      const child = spawn("git", ["version"], { stdio: "ignore" });
      own.push(performance.now() - at);
      await new Promise((resolve) => child.once("close", resolve));
    }
    bench.row(
      "P5",
      `  the same with Node's own spawn`,
      `p50 ${median(own).toFixed(2)} ms, p99 ${percentile(own, 0.99).toFixed(2)} ms`,
    );
  }
  if (ballast[5] !== 1) throw new Error("the ballast is gone");
}

/** Requests from a thread of its own, so that the client's work is not the server's. */
export function load(origin: string, request: string, ms: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { origin, request, ms } });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

async function loadWorker({ origin, request, ms }: { origin: string; request: string; ms: number }): Promise<void> {
  const { connect } = await import("node:net");
  const { parentPort } = await import("node:worker_threads");
  let answered = 0;
  const { port } = new URL(origin);
  for (let i = 0; i < 32; i++) {
    const socket = connect(Number(port), "127.0.0.1", () => socket.write(request));
    let left = -1;
    socket.on("data", (chunk: Buffer) => {
      let { length } = chunk;
      if (left < 0) {
        const head = chunk.indexOf("\r\n\r\n");
        const size = Number(/content-length: (\d+)/i.exec(chunk.toString("latin1", 0, head))?.[1] ?? 0);
        left = size + head + 4;
      }
      length = Math.min(length, left);
      left -= length;
      if (left > 0) return;
      left = -1;
      answered += 1;
      socket.write(request);
    });
  }
  setTimeout(() => {
    parentPort?.postMessage(answered);
    process.exit(0);
  }, ms);
}

/** Clients in processes of their own, so that their work is not the server's; one shell starts them all. */
function download(url: string, body: string, clients = 1): Promise<number> {
  const curl = 'curl -s -w "%{size_download}\\n" -o /dev/null --data-binary "$2" "$1"';
  return consume("sh", ["-c", `for i in $(seq ${clients}); do ${curl} & done; wait`, "sh", url, body], "");
}

function consume(program: string, args: readonly string[], input: string): Promise<number> {
  return new Promise((resolve, reject) => {
    // In a session of its own, as our git processes are: the kernel's scheduler weighs sessions, and on a busy machine
    // the comparison would measure that.
    const child = spawn(program, args, { env, detached: true });
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    child.once("error", reject);
    child.once("close", () => resolve(text.split("\n").reduce((sum, line) => sum + Number(line), 0)));
    child.stdin.end(input);
  });
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const begun = performance.now();
  const result = await work();
  return [result, performance.now() - begun];
}

async function p6(bench: Bench): Promise<void> {
  const repository = await bench.repository("p6");
  const work = await bench.workingCopy("p6");
  for (let i = 0; i < 60; i++) await writeFile(join(work, `f${i}`), randomBytes(1 << 20));
  git(work, ["-c", "core.compression=0", "add", "-A"]);
  git(work, ["commit", "-qm", "x"]);
  git(work, ["push", "-q", repository.directory, "main"]);
  await repository.housekeep();
  const tip = git(work, ["rev-parse", "HEAD"]).toString().trim();
  const ask = (agent: string): string =>
    `${pkt(`want ${tip} side-band-64k ofs-delta agent=${agent}\n`)}0000${pkt("done\n")}`;
  const pipe = 'git upload-pack --stateless-rpc "$1" | cat | wc -c';
  const piped = (): Promise<number> => consume("sh", ["-c", pipe, "sh", repository.directory], ask("direct"));
  const relay = await bareRelay(bench.folder, repository.directory, ask("direct"));
  const url = `${bench.url("p6")}/git-upload-pack`;
  const rate = (bytes: number, ms: number): number => bytes / 2 ** 20 / (ms / 1000);
  const [own, over, ours, cpu]: [number[], number[], number[], number[]] = [[], [], [], []];
  const rssBefore = process.memoryUsage().rss;
  for (let i = 0; i < 9; i++) {
    own.push(rate(...(await timed(piped))));
    over.push(rate(...(await timed(() => download(relay.origin, "")))));
    const before = process.cpuUsage();
    const [bytes, ms] = await timed(() => download(url, ask(`a${i}`)));
    const { user, system } = process.cpuUsage(before);
    ours.push(rate(bytes, ms));
    cpu.push((user + system) / 1000 / (bytes / 2 ** 20));
  }
  relay.close();
  const rss = (process.memoryUsage().rss - rssBefore) / 2 ** 20;
  const share = (limit: readonly number[]): string => `${Math.round((100 * median(ours)) / median(limit))} %`;
  bench.row("P6", "clone of 60 MiB: git to a pipe to cat to wc", `${Math.round(median(own))} MiB/s`);
  bench.row("P6", "  git to a pipe to cat to a socket to curl", `${Math.round(median(over))} MiB/s`);
  bench.row(
    "P6",
    "  ours to the same curl, answer not shared",
    `${Math.round(median(ours))} MiB/s (${share(own)} of the pipe, ${share(over)} of the socket), ${median(cpu).toFixed(2)} ms of the server's CPU a MiB, RSS +${Math.round(rss)} MiB`,
  );
  const costOf = async (work: () => Promise<unknown>): Promise<{ ms: number; cpuMs: number }> => {
    const before = bench.cpuMs();
    const [, ms] = await timed(work);
    return { ms, cpuMs: bench.cpuMs() - before };
  };
  const [one, ten, kept]: { ms: number; cpuMs: number }[][] = [[], [], []];
  for (let i = 0; i < 5; i++) {
    one?.push(await costOf(() => download(url, ask(`one${i}`))));
    ten?.push(await costOf(() => download(url, ask(`ten${i}`), 10)));
    kept?.push(await costOf(() => download(url, ask(`ten${i}`))));
  }
  const middle = (costs: readonly { ms: number; cpuMs: number }[] = []): { ms: number; cpuMs: number } => ({
    ms: median(costs.map(({ ms }) => ms)),
    cpuMs: median(costs.map(({ cpuMs }) => cpuMs)),
  });
  const [first, all, later] = [middle(one), middle(ten), middle(kept)];
  const text = ({ ms, cpuMs }: { ms: number; cpuMs: number }): string =>
    `${Math.round(ms)} ms, CPU ${Math.round(cpuMs)}`;
  const times = `${(all.ms / first.ms).toFixed(2)}×, CPU ${(all.cpuMs / first.cpuMs).toFixed(2)}×`;
  bench.row(
    "P6",
    "ten equal clones at once",
    `${text(all)}; one ${text(first)} (${times}); kept answer ${text(later)}`,
  );
}

/** What git gives over a socket when nothing but `cat` stands between: the same consumer, as many processes. */
async function bareRelay(
  folder: string,
  repository: string,
  ask: string,
): Promise<{ origin: string; close: () => void }> {
  const request = join(folder, "request");
  await writeFile(request, ask);
  const script =
    'sed "/^.$/q" >/dev/null; printf "HTTP/1.0 200 OK\\r\\n\\r\\n"; git upload-pack --stateless-rpc "$1" <"$2" | cat';
  const server = createTcpServer({ pauseOnConnect: true }, (socket) => {
    spawn("sh", ["-c", script, "sh", repository, request], {
      env,
      detached: true,
      stdio: [socket, socket, "ignore"],
    });
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() };
}

async function post(url: string, body: Buffer): Promise<string> {
  return await new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/x-git-receive-pack-request" };
    const request = httpRequest(url, { method: "POST", headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on("end", () => resolve(text));
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function p7(bench: Bench): Promise<void> {
  const work = await bench.workingCopy("p7");
  const pushes = 40;
  const bodies: { tip: Oid; body: Buffer }[] = [];
  let parent = zero;
  for (let i = 0; i < pushes; i++) {
    await writeFile(join(work, "f"), String(i));
    git(work, ["add", "-A"]);
    git(work, ["commit", "-qm", String(i)]);
    const tip = git(work, ["rev-parse", "HEAD"]).toString().trim() as Oid;
    const revs = parent === zero ? `${tip}\n` : `${tip}\n^${parent}\n`;
    const pack = git(work, ["pack-objects", "--revs", "--stdout", "-q", "--thin"], revs);
    const head = `${pkt(`${parent} ${tip} refs/heads/main\0report-status side-band-64k`)}0000`;
    bodies.push({ tip, body: Buffer.concat([Buffer.from(head), pack]) });
    parent = tip;
  }
  const backend = await httpBackend(join(bench.folder, "backend"));
  await bench.repository("p7");
  const [own, ours]: [number[], number[]] = [[], []];
  for (const { tip, body } of bodies) {
    const [theirText, theirMs] = await timed(() => post(`${backend.url}/git-receive-pack`, body));
    bench.candidates = [
      {
        id: "1".repeat(64) as EventId,
        created_at: 1,
        refs: new Map([["refs/heads/main" as RefName, tip]]),
        governs: false,
      },
    ];
    const [ourText, ourMs] = await timed(() => post(`${bench.url("p7")}/git-receive-pack`, body));
    for (const text of [theirText, ourText])
      if (!/ok refs\/heads\/main/.test(text)) throw new Error(`push refused: ${text}`);
    own.push(theirMs);
    ours.push(ourMs);
  }
  backend.close();
  const ratio = (median(ours) / median(own)).toFixed(2);
  bench.row(
    "P7",
    "push of one small commit: git http-backend",
    `p50 ${median(own).toFixed(1)} ms, p90 ${percentile(own, 0.9).toFixed(1)} ms`,
  );
  bench.row(
    "P7",
    "  ours",
    `p50 ${median(ours).toFixed(1)} ms, p90 ${percentile(ours, 0.9).toFixed(1)} ms (${ratio}×)`,
  );
  await manyRefs(bench, work, parent as Oid);
}

async function manyRefs(bench: Bench, work: string, tip: Oid): Promise<void> {
  const names = Array.from({ length: 2000 }, (_, i) => `refs/heads/b${i}` as RefName);
  const [own, ours]: [number[], number[]] = [[], []];
  for (let i = 0; i < 5; i++) {
    const bare = join(bench.folder, `refs${i}.git`);
    git(bench.folder, ["init", "-q", "--bare", bare]);
    git(work, ["push", "-q", bare, `${tip}:refs/heads/main`]);
    const repository = await bench.repository(`refs${i}`);
    git(work, ["push", "-q", repository.directory, `${tip}:refs/heads/main`]);
    const input = names.map((name) => `update ${name} ${tip} ${zero}\n`).join("");
    own.push((await timed(() => consume("git", [`--git-dir=${bare}`, "update-ref", "--stdin"], input)))[1]);
    const updates = names.map((ref) => ({ ref, to: tip }));
    ours.push((await timed(() => repository.updateRefs(updates)))[1]);
  }
  const ratio = (median(ours) / median(own)).toFixed(2);
  bench.row("P7", "2,000 refs: git update-ref --stdin", `${Math.round(median(own))} ms`);
  bench.row("P7", "  ours", `${Math.round(median(ours))} ms (${ratio}×)`);
}

async function run(only: readonly string[] = []): Promise<BenchRow[]> {
  const bench = await Bench.start();
  try {
    for (const [name, part] of Object.entries({ p6, p7, p5 })) {
      if (only.length === 0 || only.includes(name)) await part(bench);
    }
    return bench.rows;
  } finally {
    await bench.close();
  }
}

export const gitBenchmark: Benchmark = { name: "git", run: () => run() };

if (!isMainThread) await loadWorker(workerData as { origin: string; request: string; ms: number });
else if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const { goal, work, measured } of await run(process.argv.slice(2))) {
    process.stdout.write(`${goal.padEnd(4)}${work.padEnd(64)}${measured}\n`);
  }
}
