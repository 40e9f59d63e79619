// Runs one of the operator's operations for a verb: over the admin socket when a server runs, else by opening the data.

import { existsSync } from "node:fs";
import type { Config } from "../config/config.js";
import type { Lines, Outcome, Progress as Report } from "../operator/context.js";
import type { OperationName } from "../operator/operations.js";
import { askServer } from "../operator/socket.js";
import type { Store } from "../store/port.js";
import { type Abilities, CommandFailure, type Operator } from "./abilities.js";
import { withOfflineStore } from "./offline-store.js";
import { type Progress, startProgress } from "./progress.js";

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
  let bar: Progress | undefined;
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
