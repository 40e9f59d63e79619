// `holdfast serve`: the server itself. The default verb.

import type { Verb } from "../abilities.js";
import { CommandFailure } from "../abilities.js";
import { acceptSettings, settingsOf, settingsReader } from "../setting-flags.js";

export const serve: Verb = (program, abilities) => {
  const command = program
    .command("serve", { isDefault: true })
    .description("run the server (the default command)")
    .option("--json", "write the log as JSON, like --log-format json");
  acceptSettings(command, "listed").action(async () => {
    if (command.getOptionValue("json") && command.getOptionValue("logFormat") === undefined) {
      command.setOptionValue("logFormat", "json");
    }
    const loaded = settingsOf(command, abilities);
    const exitCode = await abilities.serve(loaded, settingsReader(command, abilities));
    if (exitCode !== 0) throw new CommandFailure("", exitCode === 2 ? 2 : 1);
  });
  command.addHelpText(
    "after",
    `
Signals: SIGTERM and SIGINT stop within five seconds; SIGHUP reads the settings again.

Examples:
  holdfast serve
  holdfast serve --domain git.example.com --bind-address 0.0.0.0:7334 --data-path /var/lib/holdfast
  NGIT_DATABASE_BACKEND=memory holdfast serve`,
  );
};
