// The log. It goes to standard error, because standard output belongs to the answers of commands. Text for people on
// a terminal, one JSON object a line otherwise. Writing never blocks the server.

import pino from "pino";
import { isOneFile, sourceStack } from "../base/one-file.js";
import { escapeControls } from "../base/text.js";
import { LogWriter } from "./log-writer.js";

export type Logger = pino.Logger;

export interface Log {
  readonly logger: Logger;
  /** The last lines, for the admin page. */
  readonly recent: LogRing;
  setLevel(level: string): void;
  /** Writes out what waits; for the very end of the process. */
  flush(): void;
}

interface LogOptions {
  readonly level: string;
  readonly format: "text" | "json";
  /** File descriptor; 2 is standard error. */
  readonly descriptor?: number;
  readonly colour?: boolean;
}

export function createLog(options: LogOptions): Log {
  const recent = new LogRing((line) => textLine(line, false).trimEnd());
  const shown = (line: string): string =>
    options.format === "text" ? textLine(line, options.colour ?? false) : escapeControls(line);
  const destination = new LogWriter(options.descriptor ?? 2, (count) => shown(droppedLine(count, new Date())));
  const write = (line: string): void => {
    recent.add(line);
    destination.write(shown(line));
  };
  const logger = loggerTo(write, options.level);
  return {
    logger,
    recent,
    setLevel(level) {
      logger.level = level;
    },
    flush: () => destination.flush(),
  };
}

const droppedLine = (dropped: number, time: Date): string =>
  `${JSON.stringify({ level: "warn", time, dropped, message: "lines of the log were dropped: nobody read them in time" })}\n`;

/** One JSON object a line. Levels are names (`"level":"warn"`): whoever reads or collects them needs no table of numbers. */
export const loggerTo = (write: (line: string) => void, level: string): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      messageKey: "message",
      formatters: { level: (name) => ({ level: name }) },
      ...(isOneFile && { serializers: { err: tellError } }),
    },
    { write },
  );

/** As pino tells them, with the names and lines that the sources have. */
function tellError(error: Error): unknown {
  const told = pino.stdSerializers.err(error);
  return error instanceof Error ? { ...told, type: error.name, stack: sourceStack(told.stack) } : told;
}

const repositoryFields = ["repo", "repository", "repositories", "coordinate", "identifier", "job"];
// A clone URL or a directory of git's, and an announcement's address; an identifier may hold anything up to the line's end.
const repositoryNames = /(?:npub1[02-9ac-hj-np-z]{58}|prs\/[0-9a-f]{64})\/[^\s"')]*|\b30617:[0-9a-f]{64}:[^\n"]*/g;

// What is behind a host names a repository there.
const pathsOfUrls = /\b(https?:\/\/[^\s/"')]+)\/[^\s"')]+/g;

const withoutNames = (text: string): string => text.replace(pathsOfUrls, "$1/…").replace(repositoryNames, "…");

function withoutRepositories(value: unknown): unknown {
  if (typeof value === "string") return withoutNames(value);
  if (Array.isArray(value)) return value.map(withoutRepositories);
  if (value instanceof Error)
    return {
      type: value.name,
      message: withoutNames(value.message),
      stack: withoutNames(sourceStack(value.stack ?? "")),
    };
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  const kept = Object.entries(value).filter(([field]) => !repositoryFields.includes(field));
  return Object.fromEntries(kept.map(([field, one]) => [field, withoutRepositories(one)]));
}

/** The log of a private service (GRASP-08): from level info on no line names a repository; debug tells everything. */
export function namingNoRepository(logger: Logger): Logger {
  const closed = Object.create(logger) as Logger;
  for (const level of ["info", "warn", "error", "fatal"] as const) {
    closed[level] = (...given: unknown[]) => {
      (logger[level] as (...args: unknown[]) => void).apply(logger, given.map(withoutRepositories));
    };
  }
  return closed;
}

const levelColours: Readonly<Record<string, string>> = { warn: "\x1b[33m", error: "\x1b[31m", fatal: "\x1b[31m" };

/** `2026-01-02T03:04:05.678Z INFO  message key=value`, one line whatever the values contain. */
export function textLine(json: string, colour: boolean): string {
  const { level, time, message, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const name = String(level).toUpperCase().padEnd(5);
  const paint = colour ? levelColours[String(level)] : undefined;
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${fieldText(value)}`);
  const shownLevel = paint ? `${paint}${name}\x1b[0m` : name;
  return `${String(time)} ${shownLevel} ${oneLine(String(message ?? ""))}${pairs.map(oneLine).join("")}\n`;
}

const oneLine = (text: string): string => escapeControls(text).replaceAll("\n", "\\n");

function fieldText(value: unknown): string {
  if (typeof value === "string") return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value === "object" && value !== null && "stack" in value) return String(value.stack);
  return JSON.stringify(value);
}

const maxLines = 500;
const maxLineChars = 2_000;
const maxRawChars = 20_000;

export interface RecentLine {
  /** Counts from 1 since the start. */
  readonly number: number;
  readonly text: string;
}

// Nostr secret keys, one-time links, credentials in headers and in URLs.
const secrets: readonly (readonly [RegExp, string])[] = [
  [/\b(nsec1|ncryptsec1)[02-9ac-hj-np-z]+/gi, "$1…"],
  [/\bhft_[0-9a-f]{12}_[A-Za-z0-9_-]+/g, "hft_…"],
  [/\b(token|secret|password|passwd|cookie)(["']?\s*[=:]\s*["']?)[^\s"'&,;]+/gi, "$1$2…"],
  [/\b(authorization["']?\s*[=:]\s*["']?)[^"',;]+/gi, "$1…"],
  [/\b(Bearer|Nostr|Basic) [A-Za-z0-9+/_=-]{16,}/g, "$1 …"],
  [/:\/\/[^\s/@:]*:[^\s/@]+@/g, "://…@"],
];

export const withoutSecrets = (text: string): string =>
  secrets.reduce((left, [pattern, instead]) => left.replace(pattern, instead), text);

/**
 * The last lines of the log, kept in memory for the operator's page. Bounded in lines and in their length; what looks like
 * a secret is never shown, although nothing here logs one on purpose.
 */
export class LogRing {
  readonly #textOf: (raw: string) => string;
  readonly #lines: { readonly number: number; readonly raw: string }[] = [];
  readonly #listeners = new Set<(line: RecentLine) => void>();
  #count = 0;

  /** `textOf` makes a line for people of one as it was logged; asked only when somebody looks. */
  constructor(textOf: (raw: string) => string) {
    this.#textOf = textOf;
  }

  add(raw: string): void {
    const line = { number: ++this.#count, raw: raw.length > maxRawChars ? "" : raw };
    this.#lines.push(line);
    if (this.#lines.length > maxLines) this.#lines.shift();
    for (const listener of this.#listeners) listener(this.#shown(line));
  }

  /** Oldest first; those after a number, if one is given. */
  after(number = 0): readonly RecentLine[] {
    return this.#lines.filter((line) => line.number > number).map((line) => this.#shown(line));
  }

  #shown({ number, raw }: { readonly number: number; readonly raw: string }): RecentLine {
    const text = withoutSecrets(raw === "" ? "(a line too long to be kept)" : this.#textOf(raw));
    return { number, text: text.length > maxLineChars ? `${text.slice(0, maxLineChars)}…` : text };
  }

  /** Answers how to stop. A listener must not log. */
  onLine(listener: (line: RecentLine) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
