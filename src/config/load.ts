// Reads the settings from flags, environment, file and defaults, in that order of precedence, and reports every
// fault it finds at once. Pure but for the one function it is given to read the file. And the configuration of a running
// server: what it is now, and what a reload changes.

import { type Config, completeConfig, type Origin, type Problem, type Surroundings } from "./config.js";
import { allSettings, type NamedSetting, type SettingName, type SettingValues, settingNamed } from "./schema.js";
import { flagName } from "./setting.js";
import { readValue } from "./value-kinds.js";

export interface Sources {
  /** Flags that were given, by the name after `--`, aliases included; `-n` as it was typed. */
  readonly flags: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Path of the config file, from `--config`; NGIT_CONFIG is looked at otherwise. */
  readonly configPath: string | undefined;
  /** Read when neither names one, if it is there. */
  readonly usualPath?: string;
  readonly readFile: (path: string) => string;
  readonly surroundings: Surroundings;
}

export interface LoadedConfig {
  readonly ok: true;
  readonly config: Config;
  readonly origins: ReadonlyMap<SettingName, Origin>;
  /** What was written for a setting, where something was. */
  readonly texts: ReadonlyMap<SettingName, string>;
  readonly warnings: readonly string[];
}

export type LoadResult =
  | LoadedConfig
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly warnings: readonly string[] };

interface Written {
  readonly text: string;
  readonly origin: Origin;
  readonly key: string;
}

export function loadConfig(sources: Sources): LoadResult {
  const problems: Problem[] = [];
  const file = readConfigFile(sources, problems);
  checkFlags(sources.flags, problems);
  problems.push(...privateFaults(sources, file));
  const written = (setting: NamedSetting): Written | undefined =>
    writtenIn(setting, sources, file).find((one) => isSaid(setting, one));

  const testSetting = settingNamed("NGIT_TEST");
  const inTest =
    testSetting !== undefined && readValue(testSetting.kind, written(testSetting)?.text ?? "false") === true;
  const values: Record<string, unknown> = {};
  const origins = new Map<SettingName, Origin>();
  const texts = new Map<SettingName, string>();
  for (const setting of allSettings) {
    const found = written(setting);
    problems.push(...contradictingNames(setting, writtenIn(setting, sources, file)));
    const fallback = inTest ? (setting.testFallback ?? setting.fallback) : setting.fallback;
    const text = found?.text ?? fallback;
    origins.set(setting.name, found?.origin ?? "default");
    if (text === undefined) continue;
    if (found) texts.set(setting.name, text);
    const reading = setting.kind.read(text);
    if (reading.ok) values[setting.property] = reading.value;
    else {
      for (const fault of reading.faults) problems.push(badValue(setting, found, fault));
      // So that one bad value does not hide what is wrong with the others.
      values[setting.property] = fallback === undefined ? undefined : readValue(setting.kind, fallback);
    }
  }

  const { CREDENTIALS_DIRECTORY: credentialsDirectory } = sources.environment;
  const completed = completeConfig(values as unknown as SettingValues, {
    ...sources.surroundings,
    ...(credentialsDirectory ? { credentialsDirectory } : {}),
  });
  const warnings = unknownEnvironment(sources.environment);
  const faulty = new Set(problems.map((problem) => problem.key));
  for (const problem of completed.problems) {
    const origin = origins.get(problem.key as SettingName) ?? problem.origin;
    if (!faulty.has(problem.key)) problems.push({ ...problem, origin });
  }
  if (problems.length > 0) return { ok: false, problems, warnings };
  return { ok: true, config: completed.config, origins, texts, warnings };
}

/** Everything that is written for a setting, under each of its names: the first that says something counts. */
function writtenIn(setting: NamedSetting, sources: Sources, file: ReadonlyMap<string, string>): Written[] {
  const of = (names: readonly string[], origin: Origin, textOf: (name: string) => string | undefined, dashes = "") =>
    names.flatMap((name): Written[] => {
      const text = textOf(name);
      return text === undefined ? [] : [{ text, origin, key: `${dashes}${name}` }];
    });
  const names = [setting.name, ...setting.otherNames];
  return [
    ...of([setting.flag, ...setting.aliases], "flag", (name) => sources.flags[name], "--"),
    ...of(names, "environment", (name) => sources.environment[name]),
    ...of(names, "file", (name) => file.get(name)),
  ];
}

/** An empty value means "not set" (compose files are full of them), except where empty is a value, or a mistake. */
const isSaid = ({ kind, neverEmpty }: NamedSetting, { text }: Written): boolean =>
  text.trim() !== "" || kind.acceptsEmpty === true || neverEmpty;

/** Two names of one setting in the same place: nobody knows which of them is meant. */
function contradictingNames(setting: NamedSetting, written: readonly Written[]): Problem[] {
  if (setting.otherNames.length === 0) return [];
  const said = written.filter((one) => isSaid(setting, one));
  const meantBy = ({ text }: Written): string => JSON.stringify(readValue(setting.kind, text)) ?? text;
  return said.flatMap((one) => {
    const other = said.find(({ origin, key }) => origin === one.origin && key !== one.key);
    // Told of once, at the later of the two names.
    if (!other || said.indexOf(other) > said.indexOf(one) || meantBy(other) === meantBy(one)) return [];
    return [
      {
        key: one.key,
        origin: one.origin,
        message: `is another name of ${other.key}, and the two say different things`,
        fix: `Remove one of them; the name here is ${setting.name}`,
      },
    ];
  });
}

function badValue(setting: NamedSetting, found: Written | undefined, message: string): Problem {
  const shown = setting.secret ? "the value (not shown)" : shortened(found?.text ?? "");
  const example = setting.example ?? setting.fallback;
  return {
    key: found?.key ?? setting.name,
    origin: found?.origin ?? "default",
    // A list's message quotes the entry that is wrong; there the whole list would only hide it.
    message: setting.kind.acceptsEmpty ? message : `${message}; ${shown} is not`,
    fix: example ? `For instance ${setting.name}=${example}` : `Correct it, or remove it to use the default`,
  };
}

const shortened = (text: string): string => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

function readConfigFile(sources: Sources, problems: Problem[]): Map<string, string> {
  const named = sources.configPath ?? (sources.environment.NGIT_CONFIG || undefined);
  const path = named ?? sources.usualPath;
  if (path === undefined) return new Map();
  const key = sources.configPath !== undefined ? "--config" : named === undefined ? path : "NGIT_CONFIG";
  let text: string;
  try {
    text = sources.readFile(path);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    // Nobody asked for the usual file: it need not be there.
    if (named === undefined && (reason === "ENOENT" || reason === "ENOTDIR")) return new Map();
    problems.push({
      key,
      origin: key === "--config" ? "flag" : named === undefined ? "file" : "environment",
      message: `the file ${JSON.stringify(path)} cannot be read (${reason})`,
      fix: "Check the path and its permissions; `holdfast config example` prints a file to begin with",
    });
    return new Map();
  }
  const parsed = parseConfigFile(text);
  problems.push(...parsed.problems);
  for (const { name, line } of parsed.entries) {
    if (settingNamed(name)) continue;
    problems.push({
      key: name,
      origin: "file",
      message: `line ${line} sets an unknown name`,
      fix: didYouMean(name, names()),
    });
  }
  return new Map(parsed.entries.map(({ name, value }) => [name, value]));
}

function checkFlags(flags: Sources["flags"], problems: Problem[]): void {
  const known = new Set(allSettings.flatMap((setting) => [setting.flag, ...setting.aliases]));
  for (const flag of Object.keys(flags)) {
    if (known.has(flag)) continue;
    const near = nearest(flag.replace(/^-/, ""), known);
    const fix = near ? `Did you mean --${near}?` : "`--help` after the command lists its flags";
    const key = flag.startsWith("-") ? flag : `--${flag}`;
    problems.push({ key, origin: "flag", message: "is an unknown flag", fix });
  }
}

/**
 * A server that is meant to be private must never start publicly by a slip of the pen: names that look like settings of
 * private services and are none, and a mode that is left open while members are named, stop the start.
 */
function privateFaults({ environment, flags }: Sources, file: ReadonlyMap<string, string>): Problem[] {
  const mode = "NGIT_PRIVATE_MODE";
  const written = Object.keys(environment).filter((name) => environment[name] !== undefined);
  const problems: Problem[] = written
    .filter((name) => /^ngit_?private/i.test(name) && !settingNamed(name))
    .sort()
    .map((name) => ({
      key: name,
      origin: "environment",
      message: "looks like a setting of a private service and is not known",
      fix: didYouMean(name, names()),
    }));
  const isWritten = (name: string): boolean =>
    (environment[name] ?? file.get(name) ?? flags[flagName(name)]) !== undefined;
  const modeText = flags[flagName(mode)] ?? environment[mode] ?? file.get(mode);
  const others = names().filter((name) => name.startsWith("NGIT_PRIVATE_") && name !== mode && isWritten(name));
  if (modeText?.trim() === "" || (modeText === undefined && others.length > 0)) {
    const why = modeText === undefined ? `is not set, but ${others.join(" and ")} is` : "is set and empty";
    const fix = `Write ${mode}=true, or ${mode}=false for a public server`;
    problems.push({ key: mode, origin: "environment", message: why, fix });
  }
  return problems;
}

const names = (): string[] => allSettings.map((setting) => setting.name);

function didYouMean(written: string, known: Iterable<string>): string {
  const near = nearest(written.toUpperCase(), known);
  return near ? `Did you mean ${near}?` : "Remove it; `holdfast config schema` lists all names";
}

function unknownEnvironment(environment: Sources["environment"]): string[] {
  return Object.keys(environment)
    .filter((name) => /^NGIT_(?!PRIVATE|CONFIG$)/.test(name) && !settingNamed(name))
    .sort()
    .map((name) => {
      const near = nearest(name, names());
      return `${name}: this environment variable is not known and has no effect${near ? `; did you mean ${near}?` : ""}`;
    });
}

interface FileEntry {
  readonly name: string;
  readonly value: string;
  readonly line: number;
}

/**
 * Lines `NAME=value`, comments on lines of their own. It is what systemd's EnvironmentFile and `docker run --env-file` read
 * too, so one file serves all three, and a line can be tried out in a shell as it is.
 */
function parseConfigFile(text: string): {
  readonly entries: readonly FileEntry[];
  readonly problems: Problem[];
} {
  const entries: FileEntry[] = [];
  const problems: Problem[] = [];
  const seen = new Map<string, number>();
  for (const [index, raw] of text
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    const line = index + 1;
    const trimmed = raw.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    const match = /^([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/.exec(trimmed);
    if (!match?.[1]) {
      problems.push(
        fault(`line ${line}`, "is neither NAME=value nor a comment", "Write NAME=value, or # before a comment"),
      );
      continue;
    }
    const first = seen.get(match[1]);
    if (first !== undefined) {
      problems.push(
        fault(match[1], `stands on line ${first} and again on line ${line}`, "Remove one of the two lines"),
      );
      continue;
    }
    seen.set(match[1], line);
    entries.push({ name: match[1], value: unquoted((match[2] ?? "").trim()), line });
  }
  return { entries, problems };
}

const fault = (key: string, message: string, fix: string): Problem => ({ key, origin: "file", message, fix });

/** Quotes around the whole value are for shells; nothing inside them is special. */
function unquoted(value: string): string {
  const quote = value[0];
  return value.length >= 2 && (quote === '"' || quote === "'") && value.endsWith(quote) ? value.slice(1, -1) : value;
}

/** The known name nearest to a mistyped one, if one is near. */
export function nearest(written: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.min(4, Math.floor(written.length / 3)) + 1;
  for (const name of known) {
    const distance = editDistance(written, name, bestDistance);
    if (distance < bestDistance) {
      best = name;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(a: string, b: string, enough: number): number {
  if (Math.abs(a.length - b.length) >= enough) return enough;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? enough;
}

type ReloadResult =
  | {
      readonly ok: true;
      readonly changed: readonly SettingName[];
      /** Written differently now, but fixed until the next start. */
      readonly needsRestart: readonly SettingName[];
      readonly warnings: readonly string[];
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/**
 * Rooms that follow a reloadable setting are given a function that reads it here, or are told by `onChange`.
 */
export interface LiveConfig {
  readonly current: Config;
  /** Reads everything anew. Faults change nothing. */
  reload(): ReloadResult;
  onChange(listener: (config: Config, changed: readonly SettingName[]) => void): () => void;
}

export function createLiveConfig(initial: LoadedConfig, load: () => LoadResult): LiveConfig {
  const listeners = new Set<(config: Config, changed: readonly SettingName[]) => void>();
  const live = {
    current: initial.config,
    reload(): ReloadResult {
      const loaded = load();
      if (!loaded.ok) return { ok: false, problems: loaded.problems };
      const differing = allSettings.filter(
        ({ property }) => JSON.stringify(live.current[property]) !== JSON.stringify(loaded.config[property]),
      );
      const changing = differing.filter((setting) => setting.reloadable);
      const taken = changing.map(({ property }) => [property, loaded.config[property]]);
      const changed = changing.map((setting) => setting.name);
      if (changed.length > 0) {
        live.current = { ...live.current, ...Object.fromEntries(taken) };
        for (const listener of listeners) listener(live.current, changed);
      }
      const needsRestart = differing.filter((setting) => !setting.reloadable).map((setting) => setting.name);
      return { ok: true, changed, needsRestart, warnings: loaded.warnings };
    },
    onChange(listener: (config: Config, changed: readonly SettingName[]) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return live;
}

/** What is worked out from the settings: once for each version of them, however often it is asked for. */
export function memo<T>(current: () => Config, derive: (config: Config) => T): () => T {
  let from: Config | undefined;
  let value: T;
  return () => {
    const config = current();
    if (from !== config) {
      from = config;
      value = derive(config);
    }
    return value;
  };
}
