// What developers' programs do with their arguments: `--help` explains them, what they do not know ends them with 2.
// Its twin for programs that are not compiled is scripts/program.mjs.

import { type ParseArgsConfig, parseArgs } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;
interface Arguments<Wanted extends Options> {
  readonly values: ReturnType<typeof parseArgs<{ options: Wanted; args: string[] }>>["values"];
  readonly positionals: readonly string[];
}

export function argumentsOf<Wanted extends Options>(
  usage: string,
  options: Wanted,
  allowPositionals = false,
): Arguments<Wanted> {
  const args = process.argv.slice(2);
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(`${usage}\n`);
    process.exit(0);
  }
  try {
    return parseArgs({ args, options, allowPositionals });
  } catch (error) {
    return calledWrongly((error as Error).message.split(". ")[0] ?? "");
  }
}

export function calledWrongly(sentence: string): never {
  process.stderr.write(`${sentence} (--help lists the arguments)\n`);
  process.exit(2);
}

/** An option that must be a whole number from `least` on. */
export function wholeNumber(name: string, text: string, least = 0): number {
  const value = Number(text);
  if (text.trim() !== "" && Number.isSafeInteger(value) && value >= least) return value;
  return calledWrongly(`--${name} must be a whole number from ${least}`);
}
