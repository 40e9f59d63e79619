// The schema in words: the reference page, the example file, the JSON schema and `config show`. Pure.

import type { Config, Origin } from "./config.js";
import type { LoadedConfig } from "./load.js";
import { allSettings, type NamedSetting, type SettingName, sections } from "./schema.js";
import { flagName } from "./setting.js";
import { hostPortText } from "./value-kinds.js";

const defaultWords = (setting: NamedSetting): string =>
  setting.fallbackWords ??
  (setting.fallback === undefined || setting.fallback === "" ? "none" : `\`${setting.fallback}\``);

const testWords = (setting: NamedSetting): string =>
  setting.testFallback === undefined ? "" : ` (\`${setting.testFallback}\` with NGIT_TEST=1)`;

/** Help for one flag: what it is, what it must be, what it is by default. */
export function flagHelp(setting: NamedSetting): string {
  const fallback = defaultWords(setting).replaceAll("`", "");
  return `${setting.help} ${sentence(setting.kind.words)} (default: ${fallback}) [${setting.name}]`;
}

const sentence = (words: string): string => `${words[0]?.toUpperCase() ?? ""}${words.slice(1)}.`;

const cell = (text: string): string => text.replaceAll("|", "\\|");

export function referencePage(): string {
  const lines = [
    "# Configuration",
    "",
    "Written by `node scripts/generate-docs.mjs` from the settings' schema; do not edit.",
    "",
    "A setting is taken from the first of these that has it: a flag, the environment, the config file, its default.",
    "The flag is the name in lower case without `NGIT_` and with dashes: `NGIT_LOG_LEVEL` is `--log-level`.",
    "The config file is named by `--config` or `NGIT_CONFIG`; it has lines `NAME=value`, and comments on lines that begin",
    "with `#`. systemd's `EnvironmentFile=` and `docker run --env-file` read the same format.",
    'An empty value means "not set"; for a list it means an empty list.',
    "",
    "Unknown names in the file or as flags, and bad values anywhere, stop the start with all faults listed. Unknown",
    "`NGIT_*` environment variables are only warned about, except `NGIT_PRIVATE_*`: these stop the start, so that a server",
    "that was meant to be private never starts publicly. Where a setting has a second name, the two must agree.",
    "`holdfast config check` tries a configuration without starting.",
    "",
    "Settings marked ↻ are read again at SIGHUP; the others need a restart.",
  ];
  for (const section of sections) {
    lines.push("", `## ${section.title}`, "", "| name | default | meaning |", "|---|---|---|");
    for (const setting of section.settings) {
      const others = setting.otherNames.map((other) => ` Also \`${other}\`.`);
      const flags = setting.aliases.filter((flag) => !setting.otherNames.some((other) => flagName(other) === flag));
      const aliases = [...others, ...flags.map((alias) => ` Also \`--${alias}\`.`)].join("");
      const name = `\`${setting.name}\`${setting.reloadable ? " ↻" : ""}`;
      const meaning = `${setting.help} ${sentence(setting.kind.words)}${aliases}`;
      lines.push(`| ${name} | ${cell(defaultWords(setting) + testWords(setting))} | ${cell(meaning)} |`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** A config file in which everything is commented out, to begin with. */
export function exampleFile(): string {
  const lines = [
    "# Holdfast configuration. Take away the # before a line to change it; the values shown are the defaults or examples.",
    "# Flags and environment variables of the same name win over this file.",
  ];
  for (const section of sections) {
    lines.push("", `## ${section.title}`);
    for (const setting of section.settings) {
      lines.push("", `# ${setting.help} ${sentence(setting.kind.words)}`);
      if (setting.fallbackWords) lines.push(`# Default: ${setting.fallbackWords.replaceAll("`", "")}.`);
      lines.push(`#${setting.name}=${setting.fallback ?? setting.example ?? ""}`);
    }
  }
  return `${lines.join("\n")}\n`;
}

/** The JSON schema of an object of settings as they are written: every value is text. */
export function jsonSchema(): unknown {
  const properties = allSettings.map(({ name, help, kind, secret }) => [
    name,
    { description: `${help} ${sentence(kind.words)}`, ...(secret ? { writeOnly: true } : {}), type: "string" },
  ]);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: Object.fromEntries(properties),
    additionalProperties: false,
    title: "Holdfast settings",
  };
}

interface ShownSetting {
  readonly name: SettingName;
  readonly value: string | null;
  readonly origin: Origin;
}

/** What is in force, secrets masked. */
export function shownSettings(loaded: LoadedConfig): ShownSetting[] {
  return allSettings.map((setting) => ({
    name: setting.name,
    value: shownValue(setting, loaded),
    origin: loaded.origins.get(setting.name) ?? "default",
  }));
}

function shownValue(setting: NamedSetting, loaded: LoadedConfig): string | null {
  const written = loaded.texts.get(setting.name);
  if (setting.secret) return written === undefined ? null : "********";
  return written ?? workedOut(loaded.config, setting);
}

function workedOut(config: Config, setting: NamedSetting): string | null {
  const value = config[setting.property];
  if (value === undefined) return null;
  if (typeof value === "object" && "port" in value) return hostPortText(value);
  return typeof value === "object" ? (setting.fallback ?? null) : String(value);
}
