// What several commands share: the settings as flags (and the configuration a command was called with), the answer in
// words or as JSON, whole numbers, and `--filter`. What is said wrongly ends the command with exit code 2 before it does
// anything.

import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Config, type Problem, problemText } from "../config/config.js";
import { flagHelp } from "../config/describe.js";
import { type LoadedConfig, type LoadResult, loadConfig, nearest } from "../config/load.js";
import { type NamedSetting, sections } from "../config/schema.js";
import { parseFilter } from "../nostr/filter.js";
import { type Abilities, CommandFailure } from "./abilities.js";

/** Accepts all settings as flags. Only `serve` lists them in its help: two hundred lines are enough once. */
export function acceptSettings(command: Command, inHelp: "listed" | "mentioned" = "mentioned"): Command {
  const options = inHelp === "listed" ? settingOptions("listed") : hiddenOptions();
  accepted.set(command, options);
  command.addOption(
    new Option(
      "--config <path>",
      "file with settings, lines of NAME=value; /etc/holdfast.conf if it is there [NGIT_CONFIG]",
    ),
  );
  for (const option of options) command.addOption(option);
  if (inHelp === "mentioned")
    command.addHelpText("after", "\nAll settings of `holdfast serve --help` are accepted too.");
  // Unknown flags are reported together with the other faults, not one by one.
  return command.allowUnknownOption().allowExcessArguments();
}

/** The settings' flags of each command that takes them. */
const accepted = new WeakMap<Command, readonly Option[]>();

export const settingFlags = (command: Command): readonly Option[] => accepted.get(command) ?? [];

function settingOptions(inHelp: "listed" | "hidden"): Option[] {
  const options: Option[] = [];
  for (const section of sections) {
    for (const setting of section.settings) {
      for (const flag of [setting.flag, ...setting.aliases]) {
        const option = optionFor(setting, flag).helpGroup(`${section.title}:`);
        if (inHelp === "hidden" || flag !== setting.flag) option.hideHelp();
        options.push(option);
      }
    }
  }
  return options;
}

let hidden: readonly Option[] | undefined;

/** The same ones for every command: made for each, they would be most of what it takes to start any verb. */
const hiddenOptions = (): readonly Option[] => {
  hidden ??= settingOptions("hidden");
  return hidden;
};

function optionFor(setting: NamedSetting, flag: string): Option {
  const value = setting.kind.isSwitch ? "[true|false]" : "<value>";
  const option = new Option(`--${flag} ${value}`, flagHelp(setting));
  return setting.kind.isSwitch ? option.preset("true") : option;
}

/** Reads the configuration as this command was called; can be called again to reload. */
export function settingsReader(command: Command, abilities: Abilities): () => LoadResult {
  const flags: Record<string, string> = {};
  for (const option of settingFlags(command)) {
    const value: unknown = command.getOptionValue(option.attributeName());
    if (value !== undefined) flags[option.name()] = String(value);
  }
  for (const argument of command.args) {
    // `--name` is looked up by its name; `-n` is reported as it was typed.
    const unknown = /^(?:--|(?=-))(-?[^-=][^=]*)/.exec(argument)?.[1];
    if (unknown) flags[unknown] = "";
  }
  const configPath: unknown = command.getOptionValue("config");
  return () =>
    loadConfig({
      flags,
      environment: abilities.environment,
      configPath: typeof configPath === "string" ? configPath : undefined,
      usualPath: "/etc/holdfast.conf",
      readFile: (path) => readFileSync(path, "utf8"),
      surroundings: { logIsTerminal: abilities.terminal.showsProgress, cores: abilities.cores },
    });
}

export interface Answer {
  /** For `--json`. */
  readonly json: object;
  /** JSON for people's eyes too. */
  readonly isIndented?: boolean;
  readonly text: string;
  /** False: the answer was given, and the command ends with exit code 1 all the same. */
  readonly isGood?: boolean;
}

/** A command that takes the settings and answers in words or, with `--json`, as JSON. */
export function answering(
  command: Command,
  abilities: Abilities,
  work: (config: Config, loaded: LoadedConfig) => Promise<Answer>,
): void {
  acceptSettings(command.option("--json", "answer as JSON")).action(async () => {
    const loaded = settingsOf(command, abilities);
    await sayAnswer(command, abilities, await work(loaded.config, loaded));
  });
}

export async function sayAnswer(command: Command, { terminal }: Abilities, answer: Answer): Promise<void> {
  const { json, isIndented, text, isGood = true } = answer;
  await terminal.out(`${command.getOptionValue("json") ? JSON.stringify(json, null, isIndented ? 2 : 0) : text}\n`);
  if (!isGood) throw new CommandFailure("", 1);
}

/** The configuration, or the end of the command with all faults listed. Warnings go to standard error. */
export function settingsOf(command: Command, abilities: Abilities): LoadedConfig {
  refuseSurplus(command);
  const loaded = settingsReader(command, abilities)();
  for (const warning of loaded.warnings) abilities.terminal.error(`warning: ${warning}\n`);
  if (!loaded.ok) throw configurationFailure(loaded.problems);
  return loaded;
}

function configurationFailure(problems: readonly Problem[]): CommandFailure {
  const list = problems.map((problem) => `  ${problemText(problem)} (${problem.origin})`).join("\n");
  const count = problems.length === 1 ? "one fault" : `${problems.length} faults`;
  return new CommandFailure(`the configuration has ${count}:\n${list}`, 2, { problems });
}

function refuseSurplus(command: Command): void {
  const unknownFlag = command.args.some((argument) => /^--?[^-]/.test(argument));
  const surplus = command.args[command.registeredArguments.length];
  // After an unknown flag its value looks like an argument; the flag is what will be reported.
  if (surplus === undefined || unknownFlag) return;
  const siblings = command.parent?.commands.map((other) => other.name()) ?? [];
  const near = nearest(surplus, siblings);
  const hint = near ? `Did you mean \`holdfast ${near}\`?` : "`holdfast --help` lists all commands";
  throw new CommandFailure(`${JSON.stringify(surplus)} is not a command or an expected argument. ${hint}`, 2);
}

export const wholeNumberOption = (flags: string, description: string): Option =>
  new Option(flags, description).argParser((text) => {
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError("It must be a whole number from 1.");
    return Number(text);
  });

const collect = (value: string, earlier: readonly string[]): readonly string[] => [...earlier, value];

export const acceptFilters = (command: Command, flags: string, help: string): Command =>
  command.option(flags, help, collect, []);

/** The filters given, as JSON; what is wrong is said before anybody is asked. None means all events. */
export const filtersOf = ({ filter }: Readonly<Record<string, unknown>>): readonly unknown[] =>
  (filter as readonly string[]).map(filterOf);

function filterOf(text: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CommandFailure(
      `--filter must be JSON, for instance '{"kinds":[30617]}'; ${JSON.stringify(text)} is not`,
      2,
    );
  }
  const parsed = parseFilter(value);
  if (!parsed.ok) throw new CommandFailure(`--filter ${text}: ${parsed.message}`, 2);
  return value;
}
