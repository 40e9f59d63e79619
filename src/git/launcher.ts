// Starts processes from a small helper process, because fork() of a big server stands still for tens of milliseconds
// (mechanisms.md, Launcher). The only file that imports child_process; run as a program of its own it is the helper.
// Knows nothing of git: it takes argv arrays and complete environments, never a shell line.
//
// A job: main sends {id, token, argv, env} by IPC and connects to the helper's Unix socket, once for stdout and once for
// stdin, writing only the token. (One connection for both would lose what a process said before it died, because a
// failed write closes the reading side too.) The helper starts the process, in a group of its own, with those sockets,
// drops its copies, and says `go`; only then does main write. Exit code and bounded stderr come by IPC. When main dies, IPC closes:
// the helper ends all groups and itself (threats.md row 20). When the helper dies, main ends the groups and starts
// another; jobs in flight fail with a clear reason.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { closeSync, existsSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { createServer, type NetConnectOpts, connect as netConnect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { DuplexOptions } from "node:stream";
import { fileURLToPath } from "node:url";

export interface JobLimits {
  /** The process group is ended after this, gently, then by SIGKILL. */
  readonly wallClockMs: number;
  /** `ulimit -d`: bytes of memory the process may ask for. */
  readonly memoryBytes?: number;
  /** `ulimit -t`. */
  readonly cpuSeconds?: number;
  /** `nice`: how far it stands back behind others. */
  readonly niceness?: number;
}

export interface JobRequest {
  readonly argv: readonly [string, ...string[]];
  readonly env: Readonly<Record<string, string>>;
  readonly limits: JobLimits;
  /** Without it the process reads from /dev/null. */
  readonly stdin?: boolean;
}

export interface JobExit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly timedOut: boolean;
  /** The first 64 KiB. */
  readonly stderr: string;
}

export interface Job {
  readonly stdout: Socket;
  /** Only when asked for; end() is end of file. A process that stops reading closes it; its exit tells why. */
  readonly stdin: Socket | undefined;
  /** Resolves when the process is gone, however it went; never rejects. */
  readonly exit: Promise<JobExit>;
  /** How long main itself was busy with starting it. */
  readonly startMs: number;
  /** SIGTERM to the group, SIGKILL after 5 s: lock holders must be able to remove their locks. */
  end(): void;
}

export class LauncherError extends Error {
  override readonly name = "LauncherError";
}

const tokenBytes = 32;
/** After the token: what the connection is for. */
type Role = "i" | "o";
const maxStderrBytes = 64 * 1024;
const gentleMs = 5_000;
const socketBufferBytes = 256 * 1024;
/** A connection whose token or job does not come is dropped. */
const waitForJobMs = 10_000;

type ToHelper =
  | {
      readonly type: "start";
      readonly id: number;
      readonly token: string;
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly wallClockMs: number;
      readonly stdin: boolean;
    }
  | { readonly type: "end"; readonly id: number };

type FromHelper =
  | { readonly type: "listening" }
  | { readonly type: "go"; readonly id: number; readonly pid: number }
  | { readonly type: "exit"; readonly id: number; readonly exit: JobExit };

// ---- main's side -------------------------------------------------------------------------------------------------

interface Pending {
  pid: number | undefined;
  readonly sockets: readonly Socket[];
  readonly go: () => void;
  readonly fail: (error: LauncherError) => void;
  readonly settle: (exit: JobExit) => void;
}

/** ulimit has no exec form of its own: a constant script, the values as numbers, the command as "$@". */
function underLimits(command: readonly string[], { memoryBytes, cpuSeconds, niceness }: JobLimits): readonly string[] {
  const argv = niceness === undefined ? command : ["nice", "-n", String(niceness), ...command];
  if (memoryBytes === undefined && cpuSeconds === undefined) return argv;
  const memory = memoryBytes === undefined ? "unlimited" : String(Math.ceil(memoryBytes / 1024));
  const cpu = cpuSeconds === undefined ? "unlimited" : String(Math.ceil(cpuSeconds));
  return ["/bin/sh", "-c", 'ulimit -d "$1" && ulimit -t "$2" && shift 2 && exec "$@"', "sh", memory, cpu, ...argv];
}

export class Launcher {
  readonly #directory: string;
  #helper: ChildProcess;
  #ready: Promise<void>;
  #closed = false;
  #nextId = 1;
  #starting = 0;
  #socketPath = "";
  readonly #pending = new Map<number, Pending>();
  readonly #removeDirectory = (): void => rmSync(this.#directory, { recursive: true, force: true });

  /**
   * `owner`: what only one server has at a time, its data directory. Directories that launchers of the same owner left
   * behind, because they were killed together with their server, are removed.
   */
  constructor({ owner }: { readonly owner?: string } = {}) {
    const place = tmpdir();
    const name =
      owner === undefined ? "holdfast-" : `holdfast-${createHash("sha256").update(owner).digest("hex").slice(0, 12)}-`;
    if (owner !== undefined) removeStartingWith(place, name);
    // mkdtemp makes it 0700: only this user can reach the socket.
    this.#directory = mkdtempSync(join(place, name));
    process.once("exit", this.#removeDirectory);
    [this.#helper, this.#ready] = this.#startHelper();
  }

  /** A private directory that lives as long as the launcher; for scratch repositories and shared answers. */
  get scratchDirectory(): string {
    return this.#directory;
  }

  get helperPid(): number | undefined {
    return this.#helper.pid;
  }

  get jobsInFlight(): number {
    return this.#pending.size;
  }

  #startHelper(): [ChildProcess, Promise<void>] {
    const socketPath = join(this.#directory, `launcher-${randomBytes(4).toString("hex")}`);
    const helper = fork(fileURLToPath(import.meta.url), ["holdfast-launcher", socketPath], {
      execArgv: ["--max-old-space-size=64"],
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      // Ctrl-C in a terminal must reach only main, which then ends its jobs in order.
      detached: true,
    });
    this.#socketPath = socketPath;
    const ready = new Promise<void>((resolve, reject) => {
      helper.on("message", (message: FromHelper) => {
        if (message.type === "listening") resolve();
        else this.#onMessage(message);
      });
      helper.once("error", (error) => reject(new LauncherError(`the launcher could not start: ${error.message}`)));
      helper.once("exit", () => {
        reject(new LauncherError("the launcher ended"));
        this.#onHelperGone(helper);
      });
    });
    ready.catch(() => undefined);
    // The helper must not keep a finished program alive.
    helper.unref();
    helper.channel?.unref();
    return [helper, ready];
  }

  #onMessage(message: Exclude<FromHelper, { type: "listening" }>): void {
    const job = this.#pending.get(message.id);
    if (!job) return;
    if (message.type === "go") {
      job.pid = message.pid;
      job.go();
      return;
    }
    this.#pending.delete(message.id);
    this.#holdOpen();
    const { code, signal, timedOut, stderr } = message.exit;
    job.settle({ code, signal, timedOut, stderr });
    job.fail(new LauncherError(`the process did not start: ${message.exit.stderr}`));
  }

  #onHelperGone(helper: ChildProcess): void {
    if (helper !== this.#helper) return;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    this.#holdOpen();
    // Its children outlive it: nobody else knows them.
    for (const { pid } of lost) if (pid !== undefined) signalGroup(pid, "SIGKILL");
    if (!this.#closed) [this.#helper, this.#ready] = this.#startHelper();
    for (const job of lost) {
      job.fail(new LauncherError("the launcher ended while the process was being started"));
      job.settle({ code: undefined, signal: "SIGKILL", timedOut: false, stderr: "the launcher ended" });
      for (const socket of job.sockets) socket.destroy();
    }
  }

  /** While jobs run the process must stay; an idle launcher must not hold it. */
  #holdOpen(): void {
    if (this.#pending.size + this.#starting > 0) this.#helper.channel?.ref();
    else this.#helper.channel?.unref();
  }

  /** Starts a process; resolves when its stream may be written to. */
  async start(request: JobRequest): Promise<Job> {
    if (this.#closed) throw new LauncherError("the launcher is closed");
    this.#starting += 1;
    this.#holdOpen();
    try {
      await this.#ready;
    } finally {
      this.#starting -= 1;
    }
    const begun = performance.now();
    const id = this.#nextId++;
    const token = randomBytes(tokenBytes / 2).toString("hex");
    const stdout = this.#connect(token, "o");
    const stdin = request.stdin ? this.#connect(token, "i") : undefined;
    const sockets = stdin ? [stdout, stdin] : [stdout];
    let settle!: (exit: JobExit) => void;
    const exit = new Promise<JobExit>((resolve) => {
      settle = resolve;
    });
    const started = new Promise<void>((go, fail) => {
      this.#pending.set(id, { pid: undefined, sockets, go, fail, settle });
    });
    this.#holdOpen();
    this.#send({
      type: "start",
      id,
      token,
      argv: underLimits(request.argv, request.limits),
      env: request.env,
      wallClockMs: request.limits.wallClockMs,
      stdin: stdin !== undefined,
    });
    const startMs = performance.now() - begun;
    // Without descriptors left a connection fails and the helper would wait for it for ever: it is told not to.
    const giveUp = (): void => {
      if (this.#pending.get(id)?.pid === undefined) this.#send({ type: "end", id });
    };
    for (const socket of sockets) socket.once("error", giveUp);
    try {
      await started;
    } catch (error) {
      for (const socket of sockets) socket.destroy();
      throw error;
    }
    return { stdout, stdin, exit, startMs, end: () => this.#send({ type: "end", id }) };
  }

  #connect(token: string, role: Role): Socket {
    const options: NetConnectOpts & DuplexOptions = {
      path: this.#socketPath,
      highWaterMark: socketBufferBytes,
    };
    const socket = netConnect(options);
    socket.on("error", () => undefined);
    socket.write(token + role);
    // Nobody writes to stdin's socket from the other side: reading notices when the process stops listening.
    if (role === "i") socket.resume();
    return socket;
  }

  #send(message: ToHelper): void {
    // A helper that has just died is still connected: its exit, not this, is what its jobs hear of.
    if (this.#helper.connected) this.#helper.send(message, () => undefined);
  }

  /** Ends every job and the helper; resolves when they are gone. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#helper.channel?.ref();
    await this.#ready.catch(() => undefined);
    const helper = this.#helper;
    if (helper.exitCode === null && helper.signalCode === null) {
      helper.ref();
      const gone = new Promise<void>((resolve) => helper.once("exit", () => resolve()));
      if (helper.connected) helper.disconnect();
      await gone;
    }
    process.removeListener("exit", this.#removeDirectory);
    this.#removeDirectory();
  }
}

function removeStartingWith(place: string, beginning: string): void {
  for (const name of readdirSync(place)) {
    if (name.startsWith(beginning)) rmSync(join(place, name), { recursive: true, force: true });
  }
}

function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

// ---- the helper's side -------------------------------------------------------------------------------------------

interface Running {
  readonly pid: number;
  end(): void;
}

/** What the server had open when it forked us, LMDB's file among it, would go on to every process we start. */
function closeInheritedFiles(): void {
  const descriptors = "/proc/self/fd";
  if (!existsSync(descriptors)) return;
  for (const name of readdirSync(descriptors)) {
    const descriptor = Number(name);
    if (descriptor > 2 && isFile(`${descriptors}/${name}`)) closeSync(descriptor);
  }
}

function isFile(link: string): boolean {
  try {
    return statSync(link).isFile() && !readlinkSync(link).startsWith("/memfd:");
  } catch {
    // The descriptor with which the directory was read.
    return false;
  }
}

function runHelper(socketPath: string): void {
  closeInheritedFiles();
  const running = new Map<number, Running>();
  const sockets = new Map<string, Partial<Record<Role, Socket>>>();
  const waiting = new Map<string, Extract<ToHelper, { type: "start" }>>();
  let leaving = false;

  const tell = (message: FromHelper): void => {
    if (process.connected) process.send?.(message);
  };

  /** Starts a job as soon as its message and all its connections are here, whichever comes last. */
  function startIfReady(token: string): void {
    const job = waiting.get(token);
    const { i: stdin, o: stdout } = sockets.get(token) ?? {};
    if (!job || !stdout || (job.stdin && !stdin)) return;
    waiting.delete(token);
    sockets.delete(token);
    startProcess(job, stdout, stdin);
  }

  function startProcess(job: Extract<ToHelper, { type: "start" }>, stdout: Socket, stdin: Socket | undefined): void {
    const [command = "", ...args] = job.argv;
    const child = spawn(command, args, {
      env: job.env,
      cwd: "/",
      detached: true,
      stdio: [stdin ?? "ignore", stdout, "pipe"],
    });
    // destroy, never end(): end() would shut down the connection the child shares.
    stdout.destroy();
    stdin?.destroy();
    const stderr: Buffer[] = [];
    let stderrBytes = 0;
    let timedOut = false;
    let kill: NodeJS.Timeout | undefined;
    const { pid } = child;
    child.stderr?.on("data", (chunk: Buffer) => {
      if (stderrBytes < maxStderrBytes) stderr.push(chunk.subarray(0, maxStderrBytes - stderrBytes));
      stderrBytes += chunk.length;
    });
    const finish = (code: number | null, signal: string | null, note = ""): void => {
      clearTimeout(wallClock);
      clearTimeout(kill);
      if (!running.delete(job.id) && pid !== undefined) return;
      // A group leader that is gone may have left children of its own behind.
      if (pid !== undefined) signalGroup(pid, "SIGKILL");
      const text = note + Buffer.concat(stderr).toString("utf8");
      const exit = { code: code ?? undefined, signal: signal ?? undefined, timedOut, stderr: text };
      tell({ type: "exit", id: job.id, exit });
      if (leaving && running.size === 0) leave();
    };
    const end = (): void => {
      if (pid === undefined || kill) return;
      signalGroup(pid, "SIGTERM");
      // A stopped process sees SIGTERM only when continued.
      signalGroup(pid, "SIGCONT");
      kill = setTimeout(() => signalGroup(pid, "SIGKILL"), gentleMs);
    };
    const wallClock = setTimeout(() => {
      timedOut = true;
      end();
    }, job.wallClockMs);
    child.once("error", (error) => finish(null, null, error.message));
    child.once("close", (code, signal) => finish(code, signal));
    if (pid === undefined) return;
    running.set(job.id, { pid, end });
    tell({ type: "go", id: job.id, pid });
  }

  /** Ended before all its connections were here: one of them may never come. */
  function forget({ id, token }: Extract<ToHelper, { type: "start" }>): void {
    waiting.delete(token);
    for (const socket of Object.values(sockets.get(token) ?? {})) socket.destroy();
    sockets.delete(token);
    const exit = { code: undefined, signal: undefined, timedOut: false, stderr: "it was ended before it began" };
    tell({ type: "exit", id, exit });
  }

  const server = createServer({ pauseOnConnect: true }, (socket) => {
    let token = "";
    socket.setTimeout(waitForJobMs, () => socket.destroy());
    socket.on("error", () => undefined);
    socket.on("data", (chunk: Buffer) => {
      token += chunk.toString("latin1");
      if (token.length <= tokenBytes) return;
      socket.pause();
      socket.removeAllListeners("data");
      socket.setTimeout(waitForJobMs);
      const name = token.slice(0, tokenBytes);
      socket.once("timeout", () => sockets.delete(name));
      const role: Role = token[tokenBytes] === "i" ? "i" : "o";
      // The job message may still be on its way; tokens that nobody sends are bounded.
      if (sockets.size >= 1024 && !sockets.has(name)) socket.destroy();
      else sockets.set(name, { ...sockets.get(name), [role]: socket });
      startIfReady(name);
    });
    socket.resume();
  });

  process.on("message", (message: ToHelper) => {
    if (message.type === "end") {
      running.get(message.id)?.end();
      const early = [...waiting.values()].find(({ id }) => id === message.id);
      if (early) forget(early);
      return;
    }
    waiting.set(message.token, message);
    startIfReady(message.token);
  });

  process.on("disconnect", () => {
    leaving = true;
    server.close();
    if (running.size === 0) leave();
    for (const job of running.values()) job.end();
    // Whoever is still there after a moment holds no lock worth waiting for.
    setTimeout(() => {
      for (const { pid } of running.values()) signalGroup(pid, "SIGKILL");
      leave();
    }, 1_000);
  });

  /** Main removes the directory when it leaves in order; killed, it cannot. Not before git, which may write there, is gone. */
  function leave(): never {
    try {
      rmSync(dirname(socketPath), { recursive: true, force: true, maxRetries: 5 });
    } finally {
      process.exit(0);
    }
  }
  // Main ends us by closing the channel; a stray signal to the terminal's group must not.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);

  server.listen(socketPath, 1024, () => tell({ type: "listening" }));
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === "holdfast-launcher" && process.argv[3]) {
  runHelper(process.argv[3]);
}
