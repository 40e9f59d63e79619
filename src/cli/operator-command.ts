// The shape every operator's verb has: settings as flags, `--json`, examples, one operation, one text.

import type { Command } from "commander";
import type { OperationName } from "../operator/operations.js";
import { type Abilities, CommandFailure } from "./abilities.js";
import { operate } from "./operate.js";
import { acceptSettings, settingsOf } from "./setting-flags.js";

export interface OperatorVerb<Result> {
  readonly name: string;
  readonly description: string;
  readonly examples: readonly string[];
  readonly operation: OperationName;
  readonly parameters: (args: readonly string[], options: Readonly<Record<string, unknown>>) => object;
  readonly text: (result: Result) => string;
  /** An answer that is to end with exit code 1 all the same (fsck that found something). */
  readonly failsOn?: (result: Result) => boolean;
}

/** Arguments and options of its own are added to the command this returns. */
export function operatorCommand<Result extends object>(
  parent: Command,
  abilities: Abilities,
  verb: OperatorVerb<Result>,
): Command {
  const command = parent.command(verb.name).description(verb.description).option("--json", "answer as JSON");
  command.addHelpText("after", `\nExamples:\n${verb.examples.map((example) => `  ${example}`).join("\n")}`);
  return acceptSettings(command).action(async () => {
    const { config } = settingsOf(command, abilities);
    const parameters = verb.parameters(command.args, command.opts());
    const result = await operate<Result>(abilities, config, verb.operation, parameters);
    const isGood = !verb.failsOn?.(result);
    const text = command.getOptionValue("json") ? JSON.stringify({ ok: isGood, ...result }) : verb.text(result);
    await abilities.terminal.out(`${text}\n`);
    if (!isGood) throw new CommandFailure("", 1);
  });
}
