// The life of a server process: start, signals, faults, end. Exit codes: 0 stopped as asked, 1 failed.
//   SIGTERM, SIGINT  stop within five seconds; a second one ends at once
//   SIGHUP           read the settings again
// A fault nobody expected (also a rejected promise nobody awaited) ends the process with a flushed log, never
// "log and continue": what such a process still knows cannot be trusted.

import type { Clock } from "./base/clock.js";
import { problemText } from "./config/config.js";
import type { LoadedConfig, LoadResult } from "./config/load.js";
import { createLiveConfig, type LiveConfig } from "./config/load.js";
import { createLog, type Log } from "./config/logging.js";
import type { Server, StartParts } from "./server.js";

const stopWithinMs = 5000;

export interface LifeParts {
  readonly loaded: LoadedConfig;
  readonly load: () => LoadResult;
  readonly clock: Clock;
  /** Builds the server; a test may build a smaller one. */
  readonly start: (parts: Pick<StartParts, "live" | "logger" | "recentLog" | "onFault">) => Promise<Server>;
  readonly version: string;
  /** Called once when the port is open. */
  readonly listening?: (server: Server) => Promise<void>;
}

export async function runServer(parts: LifeParts): Promise<number> {
  const { loaded, clock } = parts;
  const log = createLog({
    level: loaded.config.logLevel,
    format: loaded.config.logFormat,
    colour: process.stderr.isTTY === true,
  });
  const live = createLiveConfig(loaded, parts.load);
  live.onChange((config, changed) => {
    if (changed.includes("NGIT_LOG_LEVEL")) log.setLevel(config.logLevel);
  });
  const { logger } = log;
  const fault = (error: unknown): void => {
    logger.fatal({ err: error }, "a fault nobody expected; the process ends");
    log.flush();
    process.exit(1);
  };
  process.on("uncaughtException", fault);
  process.on("unhandledRejection", fault);

  // Signals are heard from the very beginning: a start that takes long can be stopped too.
  const stopped = new Promise<string>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      let asked = false;
      process.on(signal, () => {
        if (asked) endAtOnce(log, "asked twice");
        asked = true;
        resolve(signal);
      });
    }
  });
  process.on("SIGHUP", () => reload(live, log));

  let server: Server;
  try {
    server = await parts.start({ live, logger, recentLog: log.recent, onFault: fault });
  } catch (error) {
    if (error instanceof Error && error.name === "StartRefusal") logger.fatal(error.message);
    else logger.fatal({ err: error }, "the start failed");
    log.flush();
    return 1;
  }
  const { domain, databaseBackend } = live.current;
  logger.info({ address: server.address, domain, backend: databaseBackend, version: parts.version }, "listening");
  if (parts.listening) {
    log.flush();
    await parts.listening(server);
  }

  const signal = await stopped;
  logger.info({ signal }, "stopping");
  const cancel = clock.after(stopWithinMs - 250, () => endAtOnce(log, "closing took too long"));
  await server.close();
  cancel();
  logger.info("stopped");
  log.flush();
  return 0;
}

function endAtOnce(log: Log, why: string): never {
  log.logger.error({ why }, "ended before everything was closed; nothing acknowledged is lost");
  log.flush();
  process.exit(1);
}

function reload(live: LiveConfig, { logger }: Log): void {
  const result = live.reload();
  if (!result.ok) {
    logger.error({ problems: result.problems.map(problemText) }, "the settings have faults; nothing was changed");
    return;
  }
  for (const warning of result.warnings) logger.warn(warning);
  logger.info({ changed: result.changed, needsRestart: result.needsRestart }, "settings read again");
}
