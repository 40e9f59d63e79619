// Runs one of the operator's operations for a verb: over the admin socket when a server runs, else by opening the data.

import { existsSync } from "node:fs";
import type { OperationName } from "../admin/operations.js";
import type { Outcome } from "../admin/outcome.js";
import type { Progress as Report } from "../admin/parts.js";
import { askServer } from "../admin/socket-client.js";
import type { Config } from "../config/config.js";
import { type Abilities, CommandFailure } from "./abilities.js";
import { withOfflineStore } from "./offline-store.js";
import { type Progress, startProgress } from "./progress.js";

export async function operate<Result>(
  abilities: Abilities,
  config: Config,
  operation: OperationName,
  parameters: object,
): Promise<Result> {
  const bar = progressBar(abilities);
  const request = { operation, parameters };
  let outcome: Outcome<unknown> | undefined;
  try {
    outcome =
      (await askRunning(config, request, bar.report)) ?? (await askData(abilities, config, request, bar.report));
  } finally {
    bar.done();
  }
  if (outcome.ok) return outcome.result as Result;
  throw new CommandFailure(outcome.message, outcome.code === "bad-request" ? 2 : 1, { code: outcome.code });
}

/** Undefined when no server listens. */
export async function askRunning(
  config: Config,
  request: { readonly operation: OperationName; readonly parameters: object },
  report: Report = () => undefined,
): Promise<Outcome<unknown> | undefined> {
  return config.databaseBackend === "memory" ? undefined : askServer(config.relayDataPath, request, report);
}

async function askData(
  abilities: Abilities,
  config: Config,
  request: { readonly operation: OperationName; readonly parameters: object },
  report: Report,
): Promise<Outcome<unknown>> {
  mustHaveData(config);
  return withOfflineStore(abilities, config, (store) => abilities.operateOffline(config, store, request, report));
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
