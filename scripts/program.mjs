// What developers' programs do with their arguments: `--help` explains them, what they do not know ends them with 2.
// Its twin for compiled programs is src/base/testing/program.ts.
import { parseArgs } from "node:util";

export function argumentsOf(usage, options = {}, allowPositionals = false) {
  let parsed;
  try {
    parsed = parseArgs({ options: { ...options, help: { type: "boolean", short: "h" } }, allowPositionals });
  } catch (error) {
    calledWrongly(error.message.split(". ")[0]);
  }
  if (!parsed.values.help) return parsed;
  process.stdout.write(`${usage}\n`);
  process.exit(0);
}

export function calledWrongly(sentence) {
  process.stderr.write(`${sentence} (--help lists the arguments)\n`);
  process.exit(2);
}
