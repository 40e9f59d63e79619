// The whole server on a real port with directories of its own: in this process (startInProcess) or as a child
// (startChild: `node dist/src/main.js serve` with the variables that existing suites set). Every test that needs a whole
// server starts it here; tests of one room build that room (relay-server.ts, git-server.ts, hunt-house.ts).

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AdmissionPolicy } from "../../src/admission/verdict.js";
import { type Clock, systemClock } from "../../src/base/clock.js";
import type { Leadership } from "../../src/cluster/leadership.js";
import type { RepositoryLocks } from "../../src/cluster/repository-locks.js";
import { createLog, loggerTo } from "../../src/config/logging.js";
import type { PackStore } from "../../src/packs/port.js";
import type { ReadDisk } from "../../src/store/disk-space.js";
import type { Store } from "../../src/store/port.js";
import { freePort } from "./free-port.js";
import { liveConfigOf } from "./live-config.js";
import { RelayClient } from "./relay-client.js";

export interface TestServer {
  readonly folder: string;
  readonly gitPath: string;
  /** Of a cluster. */
  readonly machines?: readonly TestServer[];
  readonly port: number;
  readonly domain: string;
  /** `http://…` */
  readonly origin: string;
  /** `ws://…` */
  readonly url: string;
  /** Faults the server reported; a test that stops the server sees them as an error. */
  readonly faults: readonly unknown[];
  connect(): Promise<RelayClient>;
  /** Ends the server; its directories stay until the folder's owner removes them. */
  stop(): Promise<void>;
  /** Ends the server and removes its directories. */
  end(): Promise<void>;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

export interface ServerOptions {
  /** `postgres`: one machine of a cluster; the settings must say of which. */
  readonly backend?: "memory" | "lmdb" | "postgres";
  readonly settings?: Readonly<Record<string, string>>;
  /** Limits as they are by default. Otherwise they are high: tests push and publish a lot from one address. */
  readonly hasDefaultLimits?: boolean;
  /** An earlier server's, to start on what it left. */
  readonly folder?: string;
  readonly port?: number;
}

export interface InProcessOptions extends ServerOptions {
  /** Of a cluster: the machine's own. */
  readonly clock?: Clock;
  /** What a machine of a cluster takes for the cluster's time. */
  readonly timeFrom?: (database: Clock) => Clock;
  /** As the flag of `serve` says it. */
  readonly openPrivateData?: boolean;
  /** How full its disks are said to be. */
  readonly readDisk?: ReadDisk;
  /** Instead of the one its settings ask for. */
  readonly store?: Store;
  /** Where the machines of a cluster share their packs. */
  readonly packs?: PackStore;
  readonly locks?: RepositoryLocks;
  /** Whether it does what one machine of a cluster does; without it it is alone. */
  readonly leadership?: Leadership;
  /** Instead of GRASP's rules. */
  readonly policy?: AdmissionPolicy;
  /** Called with each line of the log, from level debug. */
  readonly onLog?: (line: LogLine) => void;
}

export const newFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "grasp-test-"));

export const removeFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5 });

/** The variables existing suites start a server with (interop.md, "Drop-in"). */
export function dropInEnvironment(folder: string, port: number, options: ServerOptions): Record<string, string> {
  return {
    NGIT_BIND_ADDRESS: `127.0.0.1:${port}`,
    NGIT_DOMAIN: `127.0.0.1:${port}`,
    NGIT_GIT_DATA_PATH: join(folder, "git"),
    NGIT_RELAY_DATA_PATH: join(folder, "relay"),
    NGIT_DATABASE_BACKEND: options.backend ?? "memory",
    NGIT_TEST: "1",
    ...(options.hasDefaultLimits ? {} : highLimits),
    ...options.settings,
  };
}

const highLimits = {
  NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: "100000",
  NGIT_EVENTS_PER_MINUTE_PER_IP: "100000",
  NGIT_RECEIVE_PER_SECOND_PER_IP_BYTES: "1GiB",
  NGIT_EVENTS_PER_DAY_PER_AUTHOR_BYTES: "1TiB",
  NGIT_EVENTS_PER_DAY_PER_REPOSITORY_BYTES: "1TiB",
  NGIT_EVENTS_PER_DAY_PER_IP_BYTES: "1TiB",
  NGIT_PURGATORY_ANNOUNCEMENTS_PER_HOUR_PER_IP: "10000",
};

const common = (folder: string, port: number, stop: () => Promise<void>) => ({
  folder,
  gitPath: join(folder, "git"),
  port,
  domain: `127.0.0.1:${port}`,
  origin: `http://127.0.0.1:${port}`,
  url: `ws://127.0.0.1:${port}`,
  connect: () => RelayClient.connect(`ws://127.0.0.1:${port}`),
  stop,
  end: () => stop().finally(() => removeFolder(folder)),
});

export interface InProcessServer extends TestServer {
  /** As an operator changes settings and sends SIGHUP. */
  reload(settings: Readonly<Record<string, string>>): void;
}

export async function startInProcess(options: InProcessOptions = {}): Promise<InProcessServer> {
  const folder = options.folder ?? (await newFolder());
  const port = options.port ?? (await freePort());
  const { onLog, readDisk, store, policy, leadership, packs, locks, timeFrom } = options;
  const faults: unknown[] = [];
  // Imported here: tests that start children alone need not load the server themselves.
  const environment = dropInEnvironment(folder, port, options);
  const start =
    environment.NGIT_DATABASE_BACKEND === "postgres"
      ? (await import("../../src/start-cluster.js")).startClusterServer
      : (await import("../../src/server.js")).startServer;
  const live = liveConfigOf(environment);
  const { verifier, giveBack } = await (await import("./shared-verifier.js")).borrowVerifier();
  const starting = start({
    live,
    verifier,
    logger: onLog
      ? loggerTo((line) => onLog(JSON.parse(line) as LogLine), "debug")
      : createLog({ level: process.env.GRASP_TEST_LOG ?? "silent", format: "text" }).logger,
    clock: options.clock ?? systemClock,
    build: { version: "0.0.0", commit: "test" },
    cores: 2,
    onFault: (error) => void faults.push(error),
    onRequestFault: (error) => void faults.push(error),
    ...(options.openPrivateData && { openPrivateData: true }),
    ...(readDisk && { readDisk }),
    ...(store && { store }),
    ...(policy && { policy }),
    ...(leadership && { leadership }),
    ...(packs && { packs }),
    ...(locks && { locks }),
    ...(timeFrom && { timeFrom }),
  });
  starting.catch(giveBack);
  const server = await starting;
  let stopped: Promise<void> | undefined;
  // Node's guess at a leak, by code of the server: it would stand on an operator's terminal.
  const onWarning = (warning: Error): void => {
    if (warning.name === "MaxListenersExceededWarning" && /dist\/src\//.test(warning.stack ?? "")) faults.push(warning);
  };
  process.on("warning", onWarning);
  const stop = async (): Promise<void> => {
    stopped ??= server.close().finally(giveBack);
    await stopped;
    process.off("warning", onWarning);
    if (faults.length > 0)
      throw new AggregateError(faults, `the server reported faults: ${faults.map(String).join("; ")}`);
  };
  return {
    ...common(folder, port, stop),
    faults,
    reload(settings) {
      const result = Object.assign(environment, settings) && live.reload();
      if (!result.ok) throw new Error(JSON.stringify(result.problems));
    },
  };
}

export interface ChildServer extends TestServer {
  readonly child: ChildProcess;
  /** Resolves when the process is gone. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly log: () => string;
  /** As an operator changes settings while it runs: these, beside those it was started with, and no earlier change. */
  change(settings: Readonly<Record<string, string>>): Promise<void>;
}

const mainProgram = fileURLToPath(new URL("../../src/main.js", import.meta.url));
const answersHeld = new URL("./answers-held.js", import.meta.url).href;

/** `program`: another entry point that serves; it gets `serve` as its argument as well. */
export async function startChild(
  options: ServerOptions & { readonly program?: string; readonly args?: readonly string[] } = {},
): Promise<ChildServer> {
  const folder = options.folder ?? (await newFolder());
  const port = options.port ?? (await freePort());
  const file = join(folder, "changed.conf");
  await writeFile(file, "");
  const child = spawn(
    process.execPath,
    // Without source maps: reading them is a tenth of a start.
    ["--import", answersHeld, options.program ?? mainProgram, "serve", ...(options.args ?? [])],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: folder,
        NGIT_CONFIG: file,
        ...dropInEnvironment(folder, port, options),
      },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    },
  );
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  const server = common(folder, port, async () => {
    child.kill("SIGTERM");
    await ended;
  });
  // Asking it again and again until it listens would cost a tenth of the start: it says so, unless it is set to be quiet.
  const isQuiet = !["debug", "info"].includes(options.settings?.NGIT_LOG_LEVEL ?? "info");
  const isReady = await until(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return true;
    if (!isQuiet && !log.includes('"listening"')) return false;
    return (await fetch(`${server.origin}/`).catch(() => undefined))?.status === 200;
  }, 60_000);
  if (!isReady || child.exitCode !== null) throw new Error(`the server did not start: ${log}`);
  return {
    ...server,
    faults: [],
    child,
    ended,
    log: () => log,
    async change(settings) {
      const readings = (): number => log.split("settings read again").length;
      const before = readings();
      await writeFile(
        file,
        Object.entries(settings).map(([name, value]) => `${name}=${value}\n`),
      );
      child.kill("SIGHUP");
      if (!(await until(() => readings() > before))) throw new Error(`settings were not read: ${log.slice(-2_000)}`);
    },
  };
}

/** A look at a server costs it work that no test asks for: most of the time nobody looks. */
const pauseMs = { least: 10, most: 400, forEachMsOfLooking: 12 };

/** Looks again and again until it is true; false after the time is over. A look that takes long is taken less often. */
export async function until(isSo: () => Promise<boolean> | boolean, withinMs = 120_000): Promise<boolean> {
  const end = performance.now() + withinMs;
  for (;;) {
    const begun = performance.now();
    if (await isSo()) return true;
    const now = performance.now();
    if (now > end) return false;
    await new Promise((resolve) => setImmediate(resolve));
    const { least, most, forEachMsOfLooking } = pauseMs;
    const pause = Math.min(most, Math.max(least, forEachMsOfLooking * (now - begun)));
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

/** Waits for a condition; says what it waited for when it does not come. */
export async function untilSo(what: string, isSo: () => Promise<boolean> | boolean, withinMs = 120_000): Promise<void> {
  if (!(await until(isSo, withinMs))) throw new Error(`waited ${withinMs} ms in vain: ${what}`);
}
