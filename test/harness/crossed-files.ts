// Loaded (`--import`) into the server of walked-server.ts, its threads and the launcher's helper: counts, with V8's
// precise coverage, which of our files have a function that is called, and tells the test over a Unix socket. What a
// module does while it is loaded does not count. The product knows nothing of it.

import childProcess from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { Session } from "node:inspector";
import { syncBuiltinESMExports } from "node:module";
import { connect, Socket } from "node:net";
import { createInterface } from "node:readline";
import { isMainThread } from "node:worker_threads";

/** Where a walk ends, for those that end with an answer of ours. Nothing that runs afterwards counts. */
export type WalkEnd =
  | { readonly type: "written"; readonly text: string }
  | { readonly type: "answered"; readonly method: string; readonly path: string };

export type ToRecorder = { readonly type: "begin"; readonly end?: WalkEnd } | { readonly type: "take" };

export interface FromRecorder {
  /** Of each file that was crossed (`src/relay/session.ts`), the functions that were called. */
  readonly crossed: Readonly<Record<string, readonly string[]>>;
  /** Nothing of ours was called since the last look. */
  readonly isQuiet: boolean;
}

export const socketVariable = "HOLDFAST_WALK_SOCKET";

const ours = new URL("../../src/", import.meta.url).href;

class Recorder {
  readonly #session = new Session();
  readonly #crossed = new Map<string, Set<string>>();
  #end: WalkEnd | undefined;
  #hasEnded = false;

  constructor() {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  }

  begin(end: WalkEnd | undefined): void {
    this.gather();
    this.#crossed.clear();
    this.#end = end;
    this.#hasEnded = false;
  }

  gather(): FromRecorder {
    let isQuiet = true;
    // A session of the same thread answers before `post` returns, and begins to count anew.
    this.#session.post("Profiler.takePreciseCoverage", (error, taken) => {
      if (error) throw error;
      for (const { url, functions } of taken.result) {
        if (!url.startsWith(ours)) continue;
        const file = `src/${url.slice(ours.length).replace(/\.js$/, ".ts")}`;
        if (file.includes("/testing/")) continue;
        // What begins at 0 is the module itself.
        const called = functions.filter(({ ranges: [range] }) => range && range.startOffset > 0 && range.count > 0);
        if (called.length === 0) continue;
        isQuiet = false;
        if (this.#hasEnded) continue;
        const names = this.#crossed.get(file) ?? new Set();
        this.#crossed.set(file, names);
        for (const { functionName } of called) names.add(functionName);
      }
    });
    const crossed = Object.fromEntries([...this.#crossed].map(([file, names]) => [file, [...names]]));
    return { crossed, isQuiet };
  }

  written(chunk: unknown): void {
    if (this.#end?.type !== "written" || this.#hasEnded) return;
    if (Buffer.isBuffer(chunk) ? chunk.includes(this.#end.text) : String(chunk).includes(this.#end.text)) this.#stop();
  }

  answered({ method, url = "" }: IncomingMessage): void {
    if (this.#end?.type === "answered" && method === this.#end.method && url.endsWith(this.#end.path)) this.#stop();
  }

  #stop(): void {
    this.gather();
    this.#hasEnded = true;
  }
}

function listen(path: string): void {
  const recorder = new Recorder();
  const socket = connect(path);
  socket.on("error", () => undefined);
  socket.unref();
  createInterface({ input: socket }).on("line", (line) => {
    const message = JSON.parse(line) as ToRecorder;
    if (message.type === "begin") recorder.begin(message.end);
    socket.write(`${JSON.stringify(recorder.gather())}\n`);
  });
  if (isMainThread) watchAnswers(recorder);
  if (isMainThread && process.send) watchHelper(path);
}

function watchAnswers(recorder: Recorder): void {
  const { write } = Socket.prototype;
  Socket.prototype.write = function (this: Socket, ...args: unknown[]): boolean {
    recorder.written(args[0]);
    return Reflect.apply(write, this, args) as boolean;
  } as typeof write;
  subscribe("http.server.response.finish", (message) => {
    recorder.answered((message as { readonly request: IncomingMessage }).request);
  });
}

/** The launcher starts its helper with arguments and an environment of its own. */
function watchHelper(path: string): void {
  const { fork } = childProcess;
  const forkWatched = (module: string, args: readonly string[], options: childProcess.ForkOptions) =>
    fork(module, args, {
      ...options,
      execArgv: [...(options.execArgv ?? []), "--import", import.meta.url],
      env: { ...options.env, [socketVariable]: path },
    });
  Object.assign(childProcess, { fork: forkWatched });
  syncBuiltinESMExports();
}

const path = process.env[socketVariable];
if (path !== undefined) listen(path);
