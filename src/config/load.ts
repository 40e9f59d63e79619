// Reads the settings from flags, environment, file and defaults, in that order of precedence, and reports every
// fault it finds at once. Pure but for the one function it is given to read the file.

import { type Config, completeConfig, type Surroundings } from "./config.js";
import { parseConfigFile } from "./config-file.js";
import { nearest, type Origin, type Problem } from "./problem.js";
import { allSettings, type NamedSetting, type SettingName, type SettingValues, settingNamed } from "./schema.js";

export interface Sources {
  /** Flags that were given, by the flag's name without dashes, aliases included. */
  readonly flags: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Path of the config file, from `--config`; NGIT_CONFIG is looked at otherwise. */
  readonly configPath: string | undefined;
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
  const written = (setting: NamedSetting): Written | undefined => {
    const flag = [setting.flag, ...setting.aliases].find((name) => sources.flags[name] !== undefined);
    const candidates: Written[] = [];
    if (flag !== undefined) candidates.push({ text: sources.flags[flag] ?? "", origin: "flag", key: `--${flag}` });
    const fromEnvironment = sources.environment[setting.name];
    if (fromEnvironment !== undefined) {
      candidates.push({ text: fromEnvironment, origin: "environment", key: setting.name });
    }
    const fromFile = file.get(setting.name);
    if (fromFile !== undefined) candidates.push({ text: fromFile, origin: "file", key: setting.name });
    // An empty value means "not set" (compose files are full of them), except where empty is a value: lists.
    return candidates.find(({ text }) => text.trim() !== "" || setting.kind.acceptsEmpty === true);
  };

  const testSetting = settingNamed("NGIT_TEST");
  const inTest = testSetting?.schema.safeParse(written(testSetting)?.text ?? "false").data === true;
  const values: Record<string, unknown> = {};
  const origins = new Map<SettingName, Origin>();
  const texts = new Map<SettingName, string>();
  for (const setting of allSettings) {
    const found = written(setting);
    const fallback = inTest ? (setting.testFallback ?? setting.fallback) : setting.fallback;
    const text = found?.text ?? fallback;
    origins.set(setting.name, found?.origin ?? "default");
    if (text === undefined) continue;
    if (found) texts.set(setting.name, text);
    const result = setting.schema.safeParse(text);
    if (result.success) values[setting.property] = result.data;
    else {
      for (const issue of result.error.issues) problems.push(badValue(setting, found, issue.message));
      // So that one bad value does not hide what is wrong with the others.
      values[setting.property] = fallback === undefined ? undefined : setting.schema.safeParse(fallback).data;
    }
  }

  const completed = completeConfig(values as unknown as SettingValues, sources.surroundings);
  const warnings = [...unknownEnvironment(sources.environment), ...completed.warnings];
  const faulty = new Set(problems.map((problem) => problem.key));
  for (const problem of completed.problems) {
    const origin = origins.get(problem.key as SettingName) ?? problem.origin;
    if (!faulty.has(problem.key)) problems.push({ ...problem, origin });
  }
  if (problems.length > 0) return { ok: false, problems, warnings };
  return { ok: true, config: completed.config, origins, texts, warnings };
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
  const path = sources.configPath ?? (sources.environment.NGIT_CONFIG || undefined);
  if (path === undefined) return new Map();
  const key = sources.configPath === undefined ? "NGIT_CONFIG" : "--config";
  let text: string;
  try {
    text = sources.readFile(path);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    problems.push({
      key,
      origin: key === "--config" ? "flag" : "environment",
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
    const near = nearest(flag, known);
    const fix = near ? `Did you mean --${near}?` : "`--help` after the command lists its flags";
    problems.push({ key: `--${flag}`, origin: "flag", message: "is an unknown flag", fix });
  }
}

const names = (): string[] => allSettings.map((setting) => setting.name);

function didYouMean(written: string, known: Iterable<string>): string {
  const near = nearest(written.toUpperCase(), known);
  return near ? `Did you mean ${near}?` : "Remove it; `holdfast config schema` lists all names";
}

function unknownEnvironment(environment: Sources["environment"]): string[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith("NGIT_") && name !== "NGIT_CONFIG" && !settingNamed(name))
    .sort()
    .map((name) => {
      const near = nearest(name, names());
      return `${name}: this environment variable is not known and has no effect${near ? `; did you mean ${near}?` : ""}`;
    });
}
