// Runs one of the operator's operations for a verb: over the admin socket when a server runs, else by opening the data,
// with a progress bar meanwhile. Of the table of operations only types are used, so that `holdfast status` need not load it.

import { statSync } from "node:fs";
import { lockDataDirectory } from "../base/data-lock.js";
import type { Config } from "../config/config.js";
import type { Git } from "../git/run.js";
import type { Lines, Outcome, Progress as Report } from "../operator/context.js";
import type { OperationName, ParametersOf } from "../operator/operations.js";
import type { ResultOf } from "../operator/run.js";
import { askServer } from "../operator/socket.js";
import type { Store } from "../store/port.js";
import { type Abilities, CommandFailure, type Operator } from "./abilities.js";
import { progressBar } from "./progress.js";

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
  if (config.databaseBackend === "postgres") {
    throw new CommandFailure(
      "this machine is part of a cluster, and its server does not run: start it, or run the command on a machine where it does",
    );
  }
  return underLock(config.relayDataPath, dataInUse(config), async () => {
    const { openStore } = await import("../store/open-store.js");
    const store = await openStore(config, abilities.clock, (sentence) => abilities.terminal.error(`${sentence}\n`));
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  });
}

export const dataInUse =
  ({ relayDataPath }: Config) =>
  (pid: number): string =>
    `the data directory ${relayDataPath} is in use by process ${pid}. Stop it first, for instance with \`kill ${pid}\``;

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
