// `holdfast version`.

import type { Verb } from "../abilities.js";

export const version: Verb = (program, abilities) => {
  const { version: number, commit } = abilities.build;
  program
    .command("version")
    .description("print the version")
    .option("--json", "answer as JSON")
    .action((options: { json?: boolean }) => {
      const answer = { version: number, commit, node: process.versions.node };
      const text = `holdfast ${number} (commit ${commit}, Node ${process.versions.node})`;
      return abilities.terminal.out(`${options.json ? JSON.stringify(answer) : text}\n`);
    })
    .addHelpText("after", "\nExample:\n  holdfast version --json");
};
