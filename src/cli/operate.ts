// Runs one of the operator's operations for a verb: over the admin socket when a server runs, else by opening the data,
// with a progress bar meanwhile. Of the table of operations only types are used, so that `holdfast status` need not load it.

import { statSync } from "node:fs";
import type { Clock } from "../base/clock.js";
import { lockDataDirectory } from "../base/data-lock.js";
import type { Config } from "../config/config.js";
import type { Git } from "../git/run.js";
import type { Lines, Outcome, Progress as Report } from "../operator/context.js";
import type { OperationName, ParametersOf } from "../operator/operations.js";
import type { ResultOf } from "../operator/run.js";
import { askServer } from "../operator/socket.js";
import type { Store } from "../store/port.js";
import { type Abilities, CommandFailure, type Operator, type Terminal } from "./abilities.js";

export async function operate<Name extends OperationName>(
  abilities: Abilities,
  config: Config,
  operation: Name,
  parameters: ParametersOf<Name>,
  lines?: Lines,
): Promise<ResultOf<Name>> {
  const bar = progressBar(abilities);
  const request = { operation, parameters };
  try {
    const outcome = await askRunning(config, request, bar.report, lines);
    return resultOf(outcome ?? (await askData(abilities, config, request, bar.report, lines)));
  } finally {
    bar.done();
  }
}

export function resultOf<Result>(outcome: Outcome<Result>): Result {
  if (outcome.ok) return outcome.result;
  throw new CommandFailure(outcome.message, outcome.code === "bad-request" ? 2 : 1, { code: outcome.code });
}

interface Request<Name extends OperationName> {
  readonly operation: Name;
  readonly parameters: ParametersOf<Name>;
}

/** Undefined when no server listens. */
export async function askRunning<Name extends OperationName>(
  config: Config,
  request: Request<Name>,
  report: Report = () => undefined,
  lines?: Lines,
): Promise<Outcome<ResultOf<Name>> | undefined> {
  if (config.databaseBackend === "memory") return undefined;
  const outcome = await askServer(config.relayDataPath, request, report, { lines });
  return outcome as Outcome<ResultOf<Name>> | undefined;
}

async function askData<Name extends OperationName>(
  abilities: Abilities,
  config: Config,
  request: Request<Name>,
  report: Report,
  lines: Lines | undefined,
): Promise<Outcome<ResultOf<Name>>> {
  mustHaveData(config);
  const outcome = await withOfflineStore(abilities, config, (store) =>
    withOperator(abilities, config, store, (operator) => operator.run(request, report, lines)),
  );
  return outcome as Outcome<ResultOf<Name>>;
}

/** Opens the store for a verb that works without the server, under the data directory's lock, and closes both. */
export async function withOfflineStore<T>(
  abilities: Abilities,
  config: Config,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  if (config.databaseBackend === "memory") {
    throw new CommandFailure(
      "the memory backend keeps nothing on disk, so there is nothing to work on while it does not run",
    );
  }
  const inUse = (pid: number): string =>
    `the data directory ${config.relayDataPath} is in use by process ${pid}. Stop it first, for instance with \`kill ${pid}\``;
  return underLock(config.relayDataPath, inUse, async () => {
    const { openStore } = await import("../store/open-store.js");
    const store = await openStore(config, abilities.clock, (sentence) => abilities.terminal.error(`${sentence}\n`));
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  });
}

/** Works in a directory no other process has; `inUse` says what is wrong when one has it. */
export async function underLock<T>(
  directory: string,
  inUse: (pid: number) => string,
  work: () => Promise<T>,
): Promise<T> {
  const lock = lockDataDirectory(directory);
  if (!lock.ok) throw new CommandFailure(inUse(lock.holderPid));
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** Throws GitTooOldError when there is none that can be used. */
export async function withGit<T>(work: (git: Git) => Promise<T>): Promise<T> {
  const [{ Launcher }, { Git }] = await Promise.all([import("../git/launcher.js"), import("../git/run.js")]);
  const launcher = new Launcher();
  try {
    return await work(await Git.find(launcher));
  } finally {
    await launcher.close();
  }
}

export async function withOperator<T>(
  abilities: Abilities,
  config: Config,
  store: Store,
  work: (operator: Operator) => Promise<T>,
): Promise<T> {
  const operator = await abilities.openOperator(config, store);
  try {
    return await work(operator);
  } finally {
    await operator.close();
  }
}

/** A verb in the wrong directory must say so, not make an empty database there. */
export function mustHaveData(config: Config): void {
  // What this user may not look at may well be there: that is thrown, and told as what it is.
  if (config.databaseBackend !== "memory" && !isThere(config.relayDataPath)) {
    throw new CommandFailure(`there is no data at ${config.relayDataPath}: name it with --data-path or NGIT_DATA_PATH`);
  }
}

function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

/** The work tells how far it is, one phase after the other; the bar wants to know what was added. */
export function progressBar({ terminal, clock }: Pick<Abilities, "terminal" | "clock">): {
  readonly report: Report;
  done(): void;
} {
  let bar: ProgressBar | undefined;
  let phase = "";
  let shown = 0;
  return {
    report(done, total, label) {
      if (!bar || phase !== label) {
        bar?.done();
        bar = startProgress(terminal, clock, label, total);
        phase = label;
        shown = 0;
      }
      bar.add(done - shown);
      shown = done;
    },
    done: () => bar?.done(),
  };
}

interface ProgressBar {
  add(count: number): void;
  /** Takes the bar off the screen. */
  done(): void;
}

const drawEveryMs = 100;

/** On a terminal; elsewhere silent. `total` undefined: a running count instead of a bar. */
export function startProgress(terminal: Terminal, clock: Clock, label: string, total?: number): ProgressBar {
  let count = 0;
  let drawnAtMs = Number.NEGATIVE_INFINITY;
  const startedMs = clock.monotonicMs();
  return {
    add(more) {
      count += more;
      const nowMs = clock.monotonicMs();
      if (!terminal.showsProgress || nowMs - drawnAtMs < drawEveryMs) return;
      drawnAtMs = nowMs;
      terminal.error(`\r\x1b[K${progressLine(label, count, total, nowMs - startedMs, terminal.columns)}`);
    },
    done() {
      if (terminal.showsProgress && count > 0) terminal.error("\r\x1b[K");
    },
  };
}

export function progressLine(
  label: string,
  count: number,
  total: number | undefined,
  elapsedMs: number,
  columns: number,
) {
  const rate = elapsedMs > 0 ? Math.round((count * 1000) / elapsedMs) : 0;
  if (!total) return `${label} ${count} (${rate}/s)`.slice(0, columns - 1);
  const part = Math.min(1, count / total);
  const numbers = ` ${Math.floor(part * 100)} % ${count}/${total} (${rate}/s)`;
  const width = Math.max(0, Math.min(40, columns - label.length - numbers.length - 4));
  const filled = Math.round(part * width);
  const bar = width > 4 ? ` [${"#".repeat(filled)}${".".repeat(width - filled)}]` : "";
  return `${label}${bar}${numbers}`.slice(0, columns - 1);
}
