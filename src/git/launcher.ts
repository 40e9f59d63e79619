// Starts processes from a small helper process, because fork() of a big server stands still for tens of milliseconds
// (mechanisms.md, Launcher). Knows nothing of git: it takes argv arrays and complete environments, never a shell line.
//
// A job: main sends {id, token, argv, env} by IPC and connects to the helper's Unix socket, once for stdout (unless that
// is a file) and once for stdin, writing only the token. (One connection for both would lose what a process said before it died, because a
// failed write closes the reading side too.) The helper starts the process, in a group of its own, with those sockets,
// drops its copies, and says `go`; only then does main write. Exit code and bounded stderr come by IPC. When main dies, IPC closes:
// the helper ends all groups and itself (threats.md row 20). When the helper dies, main ends the groups and starts
// another; jobs in flight fail with a clear reason.

import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { type NetConnectOpts, connect as netConnect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DuplexOptions, Readable } from "node:stream";
import {
  type FromHelper,
  forkHelper,
  type HelperProcess,
  type JobExit,
  type Role,
  signalGroup,
  type ToHelper,
  tokenBytes,
} from "./launcher-helper.js";

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
  /** An existing, empty file that gets what the process says; the job's stdout is empty then. */
  readonly stdoutFile?: string;
}

export interface Job {
  readonly stdout: Readable;
  /** Only when asked for; end() is end of file. A process that stops reading closes it; its exit tells why. */
  readonly stdin: Socket | undefined;
  /** Resolves when the process is gone, however it went; never rejects. */
  readonly exit: Promise<JobExit>;
  /** How long main itself was busy with starting it. */
  readonly startMs: number;
  /** SIGTERM to the group, SIGKILL after 3 s: lock holders must be able to remove their locks. */
  end(): void;
}

export class LauncherError extends Error {
  override readonly name = "LauncherError";
}

/** ulimit has no exec form of its own: a constant script, the values as numbers, the command as "$@". */
export function underLimits(
  command: readonly string[],
  { memoryBytes, cpuSeconds, niceness }: JobLimits,
): readonly string[] {
  const argv = niceness === undefined ? command : ["nice", "-n", String(niceness), ...command];
  if (memoryBytes === undefined && cpuSeconds === undefined) return argv;
  const memory = memoryBytes === undefined ? "unlimited" : String(Math.ceil(memoryBytes / 1024));
  const cpu = cpuSeconds === undefined ? "unlimited" : String(Math.ceil(cpuSeconds));
  return ["/bin/sh", "-c", 'ulimit -d "$1" && ulimit -t "$2" && shift 2 && exec "$@"', "sh", memory, cpu, ...argv];
}

const socketBufferBytes = 256 * 1024;

interface Pending {
  pid: number | undefined;
  readonly sockets: readonly Socket[];
  readonly go: () => void;
  readonly fail: (error: LauncherError) => void;
  readonly settle: (exit: JobExit) => void;
}

export class Launcher {
  readonly #directory: string;
  #helper: HelperProcess;
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

  #startHelper(): [HelperProcess, Promise<void>] {
    const socketPath = join(this.#directory, `launcher-${randomBytes(4).toString("hex")}`);
    const helper = forkHelper(socketPath);
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

  #onHelperGone(helper: HelperProcess): void {
    if (helper !== this.#helper) return;
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    this.#holdOpen();
    // Its children outlive it: nobody else knows them.
    for (const { pid } of lost) if (pid !== undefined) signalGroup(pid, "SIGKILL");
    if (!this.#closed) [this.#helper, this.#ready] = this.#startHelper();
    this.#holdOpen();
    for (const job of lost) {
      job.fail(new LauncherError("the launcher ended while the process was being started"));
      job.settle({ code: undefined, signal: "SIGKILL", timedOut: false, stderr: "the launcher ended" });
      for (const socket of job.sockets) socket.destroy();
    }
  }

  /** While jobs run the process must stay; an idle launcher must not hold it. */
  #holdOpen(): void {
    const isBusy = this.#pending.size + this.#starting > 0;
    // The process too: of a helper that was killed only its exit is left to wait for.
    for (const held of [this.#helper, this.#helper.channel]) {
      if (isBusy) held?.ref();
      else held?.unref();
    }
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
    const stdout = request.stdoutFile === undefined ? this.#connect(token, "o") : undefined;
    const stdin = request.stdin ? this.#connect(token, "i") : undefined;
    const sockets = [stdout, stdin].filter((socket) => socket !== undefined);
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
      stdoutFile: request.stdoutFile,
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
    return { stdout: stdout ?? Readable.from([]), stdin, exit, startMs, end: () => this.#send({ type: "end", id }) };
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
