// The helper's side of launcher.ts: takes jobs by IPC and their streams by a Unix socket, starts and ends process
// groups, and goes when main goes. The only file that imports child_process; run as a program of its own it is the helper.
// It lives as long as the server and loads this file alone: whatever it imports is held a second time.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

export const tokenBytes = 32;

/** After the token: what the connection is for. */
export type Role = "i" | "o";

const maxStderrBytes = 64 * 1024;

/** How long a process may take to end by itself. A server that stops waits for it, and must have time left for the rest. */
export const gentleMs = 3_000;

/** A connection whose token or job does not come is dropped. */
const waitForJobMs = 10_000;

export interface JobExit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
  readonly timedOut: boolean;
  /** The first 64 KiB. */
  readonly stderr: string;
}

export type ToHelper =
  | {
      readonly type: "start";
      readonly id: number;
      readonly token: string;
      readonly argv: readonly string[];
      readonly env: Readonly<Record<string, string>>;
      readonly wallClockMs: number;
      readonly stdin: boolean;
      readonly stdoutFile: string | undefined;
    }
  | { readonly type: "end"; readonly id: number };

type Start = Extract<ToHelper, { type: "start" }>;

export type FromHelper =
  | { readonly type: "listening" }
  | { readonly type: "go"; readonly id: number; readonly pid: number }
  | { readonly type: "exit"; readonly id: number; readonly exit: JobExit };

export type HelperProcess = ChildProcess;

const ourName = "holdfast-launcher";

export const forkHelper = (socketPath: string): HelperProcess =>
  fork(fileURLToPath(import.meta.url), [ourName, socketPath], {
    execArgv: ["--max-old-space-size=64"],
    env: { PATH: process.env.PATH ?? "/usr/bin:/bin" },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    // Ctrl-C in a terminal must reach only main, which then ends its jobs in order.
    detached: true,
  });

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
  const waiting = new Map<string, Start>();
  let leaving = false;

  const tell = (message: FromHelper): void => {
    // A server that was killed is connected until we hear of it; without somebody to tell, a failed message would end us.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  };

  /** Starts a job as soon as its message and all its connections are here, whichever comes last. */
  function startIfReady(token: string): void {
    const job = waiting.get(token);
    const { i: stdin, o: stdout } = sockets.get(token) ?? {};
    if (!job || (job.stdin && !stdin)) return;
    const output = job.stdoutFile === undefined ? stdout : openOrRefuse(job, job.stdoutFile);
    if (output === undefined) return;
    waiting.delete(token);
    sockets.delete(token);
    startProcess(job, output, stdin);
  }

  function openOrRefuse(job: Start, path: string): number | undefined {
    try {
      // Main has made it: if it is gone, so is whoever wanted it.
      return openSync(path, "r+");
    } catch {
      forget(job, "its file could not be opened");
      return undefined;
    }
  }

  function startProcess(job: Start, stdout: Socket | number, stdin: Socket | undefined): void {
    const [command = "", ...args] = job.argv;
    const child = spawn(command, args, {
      env: { ...job.env },
      cwd: "/",
      detached: true,
      stdio: [stdin ?? "ignore", stdout, "pipe"],
    });
    // destroy, never end(): end() would shut down the connection the child shares.
    if (typeof stdout === "number") closeSync(stdout);
    else stdout.destroy();
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
  function forget({ id, token }: Start, reason: string): void {
    waiting.delete(token);
    for (const socket of Object.values(sockets.get(token) ?? {})) socket.destroy();
    sockets.delete(token);
    const exit = { code: undefined, signal: undefined, timedOut: false, stderr: reason };
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
      if (early) forget(early, "it was ended before it began");
      return;
    }
    waiting.set(message.token, message);
    startIfReady(message.token);
  });

  process.on("disconnect", () => {
    leaving = true;
    server.close();
    if (running.size === 0) return leave();
    for (const job of running.values()) job.end();
    // Whoever is still there after a moment holds no lock worth waiting for.
    setTimeout(() => {
      for (const { pid } of running.values()) signalGroup(pid, "SIGKILL");
      leave();
    }, 1_000);
  });

  /** Main removes the directory when it leaves in order; killed, it cannot. A git that is dying may still write there. */
  function leave(attempts = 30): void {
    const directory = dirname(socketPath);
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch {
      // Somebody wrote while it was being removed.
    }
    if (attempts === 0 || !existsSync(directory)) process.exit(0);
    setTimeout(() => leave(attempts - 1), 100);
  }
  // Main ends us by closing the channel; a stray signal to the terminal's group must not.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);

  server.listen(socketPath, 1024, () => tell({ type: "listening" }));
}

export function signalGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === ourName && process.argv[3]) {
  runHelper(process.argv[3]);
}
