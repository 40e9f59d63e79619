// The command line: builds the program from its verbs, runs one, answers an exit code: 0 done, 1 failed, 2 called wrongly.

import { Command, CommanderError } from "commander";
import { escapeControls } from "../config/logging.js";
import { type Abilities, CommandFailure } from "./abilities.js";
import { verbs } from "./verbs.js";

export function buildProgram(abilities: Abilities): Command {
  const program = new Command("holdfast")
    .description("A GRASP server: a Nostr relay and a git host on one port.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void abilities.terminal.out(text),
      writeErr: (text) => abilities.terminal.error(text),
      getOutHelpWidth: () => Math.min(120, Math.max(60, abilities.terminal.columns)),
    })
    .showHelpAfterError("(add --help for the arguments)")
    .enablePositionalOptions();
  program.addHelpText(
    "after",
    `
Examples:
  holdfast                                   start a server on 127.0.0.1:7334 with its data in ./data
  holdfast serve --domain git.example.com --bind-address 0.0.0.0:7334
  holdfast config check --config /etc/holdfast.conf
  holdfast status --json

Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration.`,
  );
  for (const verb of verbs) verb(program, abilities);
  return program;
}

export async function runCommandLine(argv: readonly string[], abilities: Abilities): Promise<number> {
  const program = buildProgram(abilities);
  const asJson = argv.includes("--json");
  try {
    await program.parseAsync([...argv]);
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (!(error instanceof CommandFailure)) throw error;
    // Without a message the command has said everything itself.
    if (error.message === "") return error.exitCode;
    if (asJson)
      await abilities.terminal.out(`${JSON.stringify({ ok: false, error: error.message, ...error.details })}\n`);
    else {
      const lines = error.message.split("\n").map(escapeControls).join("\n");
      abilities.terminal.error(`holdfast: ${lines}\n`);
    }
    return error.exitCode;
  }
}
