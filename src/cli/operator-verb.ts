// Verbs made from the table of operations: arguments, flags, help and examples as the table describes them.

import { Argument, type Command, Option } from "commander";
import type { Config } from "../config/config.js";
import { descriptionOf, type OperationName, type ParametersOf } from "../operator/operations.js";
import { type Parameter, parametersOf } from "../operator/parameters.js";
import type { ResultOf } from "../operator/run.js";
import { type Abilities, CommandFailure } from "./abilities.js";
import { acceptFilters, answering, filtersOf, wholeNumberOption } from "./flags.js";
import { operate } from "./operate.js";

interface Answering<Name extends OperationName> {
  readonly text: (result: ResultOf<Name>, asked: ParametersOf<Name>) => string;
  /** An answer that is to end with exit code 1 all the same (fsck that found something). */
  readonly failsOn?: (result: ResultOf<Name>) => boolean;
  /** Throws when what was typed makes no sense. */
  readonly check?: (asked: ParametersOf<Name>) => void;
  /** What it would do, shown before it is done: asked for on a terminal, elsewhere only with `--yes`. */
  readonly preview?: (
    asked: ParametersOf<Name>,
    config: Config,
  ) => Promise<{ readonly would: object; readonly text: string }>;
}

/** The verb of an operation, as the table describes it: settings as flags, `--json`, examples, arguments, one text. */
export function operatorVerb<Name extends OperationName>(
  parent: Command,
  abilities: Abilities,
  operation: Name,
  { text, failsOn, check, preview }: Answering<Name>,
): Command {
  const { verb = "", help = "", examples = [] } = descriptionOf(operation);
  const command = parent.command(verb.split(" ").at(-1) ?? "").description(help);
  command.addHelpText("after", `\nExamples:\n${examples.map((example) => `  ${example}`).join("\n")}`);
  if (preview) command.option("--yes", "do it without asking, for scripts");
  answering(command, abilities, async (config) => {
    const asked = parametersTyped();
    check?.(asked);
    if (preview && command.getOptionValue("yes") !== true) {
      await mustAgree(abilities, command, await preview(asked, config));
    }
    const result = await operate(abilities, config, operation, asked);
    const isGood = !failsOn?.(result);
    return { json: { ok: isGood, ...(result as object) }, text: text(result, asked), isGood };
  });
  const parametersTyped = addParameters(command, operation);
  return command;
}

async function mustAgree(
  { terminal }: Abilities,
  command: Command,
  { would, text }: { readonly would: object; readonly text: string },
): Promise<void> {
  const isAsked = terminal.isInteractive === true && command.getOptionValue("json") !== true;
  if (!isAsked) throw new CommandFailure(`${text}\nNothing was done: add --yes to do it`, 1, { would });
  terminal.error(`${text}\nGo on? [y/N] `);
  for await (const line of terminal.lines()) {
    if (/^y(?:es)?$/i.test(line.trim())) return;
    break;
  }
  throw new CommandFailure("nothing was done");
}

/** Lets a command take what the table says of an operation; answers what was typed once the command was called. */
export function addParameters<Name extends OperationName>(command: Command, operation: Name): () => ParametersOf<Name> {
  const readers = parametersOf(operation)
    .filter(({ flags }) => flags !== undefined)
    .map((parameter) => [parameter.name, addParameter(command, parameter)] as const);
  return () => Object.fromEntries(readers.map(([name, read]) => [name, read()])) as ParametersOf<Name>;
}

function addParameter(command: Command, { flags = "", help = "", type, choices, standard }: Parameter): () => unknown {
  if (!flags.startsWith("-")) {
    const argument = new Argument(flags, help);
    const index = command.registeredArguments.length;
    command.addArgument(choices ? argument.choices(choices) : argument);
    return () => command.args[index];
  }
  if (type === "list") {
    acceptFilters(command, flags, help);
    return () => filtersOf(command.opts());
  }
  const option = type === "number" ? wholeNumberOption(flags, help) : new Option(flags, help);
  if (choices) option.choices(choices);
  if (standard !== undefined) option.default(standard);
  command.addOption(option);
  const value = (): unknown => command.getOptionValue(option.attributeName());
  return type === "switch" ? () => value() === true : value;
}
