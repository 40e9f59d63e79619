// Operator's verbs: each runs one operation, over the admin socket when a server runs, else by opening the data, and
// shows a progress bar meanwhile.

import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import type { Lines, Outcome, Progress as Report } from "../operator/context.js";
import type { OperationName } from "../operator/operations.js";
import { askServer } from "../operator/socket.js";
import type { Store } from "../store/port.js";
import { type Abilities, CommandFailure, type Operator, type Terminal } from "./abilities.js";
import { withOfflineStore } from "./data-directory.js";
import { acceptSettings, settingsOf } from "./flags.js";

export async function operate<Result>(
  abilities: Abilities,
  config: Config,
  operation: OperationName,
  parameters: object,
  lines?: Lines,
): Promise<Result> {
  const bar = progressBar(abilities);
  const request = { operation, parameters };
  try {
    const outcome = await askRunning(config, request, bar.report, lines);
    return resultOf<Result>(outcome ?? (await askData(abilities, config, request, bar.report, lines)));
  } finally {
    bar.done();
  }
}

export function resultOf<Result>(outcome: Outcome<unknown>): Result {
  if (outcome.ok) return outcome.result as Result;
  throw new CommandFailure(outcome.message, outcome.code === "bad-request" ? 2 : 1, { code: outcome.code });
}

/** Undefined when no server listens. */
export async function askRunning(
  config: Config,
  request: { readonly operation: OperationName; readonly parameters: object },
  report: Report = () => undefined,
  lines?: Lines,
): Promise<Outcome<unknown> | undefined> {
  return config.databaseBackend === "memory" ? undefined : askServer(config.relayDataPath, request, report, { lines });
}

async function askData(
  abilities: Abilities,
  config: Config,
  request: { readonly operation: OperationName; readonly parameters: object },
  report: Report,
  lines: Lines | undefined,
): Promise<Outcome<unknown>> {
  mustHaveData(config);
  return withOfflineStore(abilities, config, (store) =>
    withOperator(abilities, config, store, (operator) => operator.run(request, report, lines)),
  );
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
  if (config.databaseBackend !== "memory" && !existsSync(config.relayDataPath)) {
    throw new CommandFailure(`there is no data at ${config.relayDataPath}: name it with --data-path or NGIT_DATA_PATH`);
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

interface OperatorVerb<Result> {
  readonly name: string;
  readonly description: string;
  readonly examples: readonly string[];
  readonly operation: OperationName;
  readonly parameters: (args: readonly string[], options: Readonly<Record<string, unknown>>) => object;
  readonly text: (result: Result) => string;
  /** An answer that is to end with exit code 1 all the same (fsck that found something). */
  readonly failsOn?: (result: Result) => boolean;
}

/**
 * The shape every operator's verb has: settings as flags, `--json`, examples, one operation, one text. Arguments and
 * options of its own are added to the command this returns.
 */
export function operatorCommand<Result extends object>(
  parent: Command,
  abilities: Abilities,
  verb: OperatorVerb<Result>,
): Command {
  const command = parent.command(verb.name).description(verb.description).option("--json", "answer as JSON");
  command.addHelpText("after", `\nExamples:\n${verb.examples.map((example) => `  ${example}`).join("\n")}`);
  return acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    const parameters = verb.parameters(command.args, command.opts());
    const result = await operate<Result>(abilities, config, verb.operation, parameters);
    const isGood = !verb.failsOn?.(result);
    const text = command.getOptionValue("json") ? JSON.stringify({ ok: isGood, ...result }) : verb.text(result);
    await abilities.terminal.out(`${text}\n`);
    if (!isGood) throw new CommandFailure("", 1);
  });
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
