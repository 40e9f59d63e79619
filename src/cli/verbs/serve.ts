// `holdfast serve`: the server itself, the default verb; and `holdfast config check|show|schema|example`: what the
// settings are, without starting anything.

import { exampleFile, jsonSchema, shownSettings } from "../../config/describe.js";
import { CommandFailure, type Verb } from "../abilities.js";
import { acceptSettings, answering, settingsOf, settingsReader } from "../flags.js";

export const serve: Verb = (program, abilities) => {
  const command = program
    .command("serve", { isDefault: true })
    .description("run the server (the default command)")
    .option("-q, --quiet", "no greeting on a terminal, and only warnings and errors in the log")
    .option("--json", "write the log as JSON, like --log-format json")
    .option("--open-private-data", "show to everybody what ran as a private service (NGIT_PRIVATE_MODE) until now");
  acceptSettings(command, "listed").action(async () => {
    if (command.getOptionValue("json") && command.getOptionValue("logFormat") === undefined) {
      command.setOptionValue("logFormat", "json");
    }
    const isQuiet = command.getOptionValue("quiet") === true;
    if (isQuiet && command.getOptionValue("logLevel") === undefined) command.setOptionValue("logLevel", "warn");
    const loaded = settingsOf(command, abilities);
    const openPrivateData = command.getOptionValue("openPrivateData") === true;
    const exitCode = await abilities.serve(loaded, settingsReader(command, abilities), {
      openPrivateData,
      greets: abilities.terminal.showsProgress && !isQuiet && loaded.config.logFormat === "text",
    });
    if (exitCode !== 0) throw new CommandFailure("", exitCode === 2 ? 2 : 1);
  });
  command.addHelpText(
    "after",
    `
Signals: SIGTERM and SIGINT stop within five seconds; SIGHUP reads the settings again,
or stops when the terminal was closed.

Examples:
  holdfast serve
  holdfast serve --domain git.example.com --bind-address 0.0.0.0:7334 --data-path /var/lib/holdfast
  NGIT_DATABASE_BACKEND=memory holdfast serve`,
  );
};

export const config: Verb = (program, abilities) => {
  const { terminal } = abilities;
  const parent = program.command("config").description("check, show and describe the settings");

  const check = parent.command("check").description("find every fault in the settings");
  answering(check, abilities, async (_config, { warnings }) => ({
    json: { ok: true, warnings },
    text: "The configuration is fine.",
  }));
  check.addHelpText("after", "\nExample:\n  holdfast config check --config /etc/holdfast.conf");

  const show = parent
    .command("show")
    .description("the settings in force and where each comes from; secrets are masked")
    .option("--json", "answer as JSON")
    .option("--changed", "only what is not the default");
  acceptSettings(show).action(async () => {
    const loaded = settingsOf(show, abilities);
    const shown = shownSettings(loaded).filter((item) => !show.getOptionValue("changed") || item.origin !== "default");
    if (show.getOptionValue("json")) return terminal.out(`${JSON.stringify({ ok: true, settings: shown }, null, 2)}\n`);
    const lines = shown.map(({ name, value, origin }) => `${origin.padEnd(11)} ${name}=${value ?? ""}\n`);
    return terminal.out(lines.join(""));
  });
  show.addHelpText("after", "\nExample:\n  holdfast config show --changed");

  parent
    .command("schema")
    .description("the JSON schema of all settings")
    .option("--json", "this answer is JSON anyway")
    .action(() => terminal.out(`${JSON.stringify(jsonSchema(), null, 2)}\n`))
    .addHelpText("after", "\nExample:\n  holdfast config schema > holdfast.schema.json");

  parent
    .command("example")
    .description("a config file with everything in it, commented out")
    .option("--json", "as a JSON string")
    .action((options: { json?: boolean }) =>
      terminal.out(options.json ? `${JSON.stringify(exampleFile())}\n` : exampleFile()),
    )
    .addHelpText("after", "\nExample:\n  holdfast config example > holdfast.conf");
};
