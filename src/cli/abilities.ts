// What verbs are given by main: the process they run in, and what only the files beside the rooms can build. So every verb
// can be run in a test. Rooms below are imported where a verb works with them.

import type { Clock } from "../base/clock.js";
import type { TemporaryServer } from "../bench/measure.js";
import type { Config } from "../config/config.js";
import type { LoadedConfig, LoadResult } from "../config/load.js";
import type { ImportHouse } from "../import/import-repositories.js";
import type { Lines, Outcome, Progress } from "../operator/context.js";
import type { Store } from "../store/port.js";

export interface Terminal {
  /** Answers: standard output. Resolves when there is room for more. */
  out(text: string): Promise<void>;
  /** Everything else: standard error. */
  error(text: string): void;
  /** Whether standard error is a terminal, so that a progress bar makes sense. */
  readonly showsProgress: boolean;
  readonly columns: number;
  /** Whether somebody can answer a question: standard input and standard error are terminals. */
  readonly isInteractive?: boolean;
  /** Standard input as lines. */
  lines(): AsyncIterable<string>;
}

export interface BuildInfo {
  readonly version: string;
  /** Short commit id, or `unknown`. */
  readonly commit: string;
}

export interface Operator {
  run(
    request: { readonly operation: string; readonly parameters: unknown },
    progress: Progress,
    lines?: Lines,
  ): Promise<Outcome<unknown>>;
  close(): Promise<void>;
}

export interface Abilities {
  readonly terminal: Terminal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** As it was when the program was called, for files that belong to the caller. The server's own data stays closed. */
  readonly umask: number;
  readonly clock: Clock;
  readonly build: BuildInfo;
  readonly cores: number;
  /** Runs the server until it is told to stop; answers the exit code. */
  serve(
    loaded: LoadedConfig,
    load: () => LoadResult,
    wishes: { readonly openPrivateData: boolean; readonly greets: boolean },
  ): Promise<number>;
  /** The operator's operations over data no server has open. */
  openOperator(config: Config, store: Store): Promise<Operator>;
  /** Everything a server does to events and git data, over a store no server has open, for moving another server here.
   * Undefined when its key or domain cannot be used. */
  openImport(config: Config, store: Store): Promise<(ImportHouse & { close(): Promise<void> }) | undefined>;
  /** A whole server with its data in that folder, on a free port of this machine. */
  startTemporary(folder: string): Promise<TemporaryServer>;
}

/** Adds one verb to the program. A new verb is such a function and a line in run.ts. */
export type Verb = (program: import("commander").Command, abilities: Abilities) => void;

/** An expected end of a command that did not do what it was asked: 1 failed, 2 called wrongly. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";
  constructor(
    message: string,
    readonly exitCode: 1 | 2 = 1,
    /** For `--json`. */
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}
