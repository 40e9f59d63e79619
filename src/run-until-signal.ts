// The life of a server process: start, signals, faults, end. Exit codes: 0 stopped as asked, 1 failed.
//   SIGTERM, SIGINT  stop within five seconds; a second one ends at once
//   SIGHUP           read the settings again; stop where it says that the terminal the log goes to was closed
// A fault nobody expected (also a rejected promise nobody awaited) ends the process with a flushed log, never
// "log and continue": what such a process still knows cannot be trusted.
// A machine of a cluster whose copy of the data has become worthless closes its server and starts it again by itself.

import { isatty } from "node:tty";
import type { Clock } from "./base/clock.js";
import { keepCompiled } from "./base/one-file.js";
import { hasColour } from "./cli/greeting.js";
import { problemText } from "./config/config.js";
import type { LoadedConfig, LoadResult } from "./config/load.js";
import { createLiveConfig, type LiveConfig } from "./config/load.js";
import { createLog, type Log, namingNoRepository } from "./config/logging.js";
import { giveBackAfterStart } from "./free-memory.js";
import type { Server, StartParts } from "./server.js";

export const stopWithinMs = 5000;
/** A server that begins anew and cannot tries again after this. */
const againMs = 10_000;
/** One that cannot even be closed ends: whoever watches over it starts it again. */
const closeBeforeAnewMs = 60_000;
const standardError = 2;
/** When whoever waited for the start has been served. */
const settledMs = 10_000;

export interface LifeParts {
  readonly loaded: LoadedConfig;
  readonly load: () => LoadResult;
  readonly clock: Clock;
  /** Builds the server; a test may build a smaller one. */
  readonly start: (
    parts: Pick<StartParts, "live" | "logger" | "recentLog" | "onFault" | "beginAnew">,
  ) => Promise<Server>;
  readonly version: string;
  /** Called once when the port is open. */
  readonly listening?: (server: Server) => Promise<void>;
}

export async function runServer(parts: LifeParts): Promise<number> {
  const { loaded, clock } = parts;
  const hasTerminal = process.stderr.isTTY === true;
  const log = createLog({
    level: loaded.config.logLevel,
    format: loaded.config.logFormat,
    colour: hasTerminal && hasColour(process.env),
  });
  const live = createLiveConfig(loaded, parts.load);
  live.onChange((config, changed) => {
    if (changed.includes("NGIT_LOG_LEVEL")) log.setLevel(config.logLevel);
  });
  // What ends the process may name a repository too.
  const logger = loaded.config.privateMode ? namingNoRepository(log.logger) : log.logger;
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
    process.on("SIGHUP", () => {
      // Whoever closes the window of a server wants it gone, and nobody could see it any more.
      if (hasTerminal && !isatty(standardError)) resolve("SIGHUP");
      else reload(live, log);
    });
  });

  const { domain, databaseBackend } = live.current;
  const start = async (): Promise<Life> => {
    let beginAnew!: (error: Error) => void;
    const isWorthless = new Promise<Error>((resolve) => {
      beginAnew = resolve;
    });
    const server = await parts.start({ live, logger, recentLog: log.recent, onFault: fault, beginAnew });
    logger.info({ address: server.address, domain, backend: databaseBackend, version: parts.version }, "listening");
    return { server, isWorthless };
  };
  let life: Life | undefined;
  try {
    life = await start();
  } catch (error) {
    tellFailedStart(log, "fatal", error);
    return 1;
  }
  if (parts.listening) {
    log.flush();
    await parts.listening(life.server);
  }

  const cancelKeeping = clock.after(settledMs, keepCompiled);
  const cancelGiving = giveBackAfterStart(clock, settledMs, fault);

  const closeWithin = async (ms: number): Promise<void> => {
    const cancel = clock.after(ms, () => endAtOnce(log, "closing took too long", life?.server.closing?.()));
    await life?.server.close();
    cancel();
  };
  // Whoever asks a server to stop that is beginning anew waits no longer than for any other.
  let isBeginningAnew = false;
  void stopped.then(() => {
    if (isBeginningAnew) clock.after(stopWithinMs - 250, () => endAtOnce(log, "it was beginning anew"));
  });
  let signal = await endOf(stopped, life);
  while (signal instanceof Error) {
    logger.error(
      { err: signal },
      "this server begins anew: it answers nothing until its copy of the data is built again",
    );
    isBeginningAnew = true;
    await closeWithin(closeBeforeAnewMs);
    life = await start().catch((error: unknown) => tellFailedStart(log, "error", error));
    isBeginningAnew = false;
    signal = await (life ? endOf(stopped, life) : Promise.race([stopped, later(clock)]));
  }
  logger.info({ signal }, "stopping");
  cancelKeeping();
  cancelGiving();
  await closeWithin(stopWithinMs - 250);
  logger.info("stopped");
  log.flush();
  return 0;
}

interface Life {
  readonly server: Server;
  /** Its copy of a cluster's data is of no use any more. */
  readonly isWorthless: Promise<Error>;
}

const endOf = (stopped: Promise<string>, { isWorthless }: Life): Promise<string | Error> =>
  Promise.race([stopped, isWorthless]);

/** Without a server nothing else would keep the process alive. */
function later(clock: Clock): Promise<Error> {
  const awake = setInterval(() => undefined, againMs);
  return new Promise((resolve) => {
    clock.after(againMs, () => {
      clearInterval(awake);
      resolve(new Error("the start failed"));
    });
  });
}

function tellFailedStart(log: Log, level: "fatal" | "error", error: unknown): undefined {
  if (error instanceof Error && error.name === "StartRefusal") log.logger[level](error.message);
  else log.logger[level]({ err: error }, "the start failed");
  log.flush();
}

function endAtOnce(log: Log, why: string, part?: string): never {
  log.logger.error(
    { why, ...(part !== undefined && { part }) },
    "ended before everything was closed; nothing acknowledged is lost",
  );
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
