// `holdfast completion bash|zsh|fish`: scripts made from the program's own commands and flags, so they are never behind;
// and `holdfast version`, which must load nothing.

import { Argument, type Command } from "commander";
import type { Verb } from "../abilities.js";
import type { Completion, Place, Word } from "../completion-scripts.js";

export const completion: Verb = (program, abilities) => {
  program
    .command("completion")
    .description("print a completion script for a shell, with descriptions")
    .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
    .option("--json", "the words by command, as JSON")
    .action(async (shell: "bash" | "zsh" | "fish", options: { json?: boolean }) => {
      const { bashScript, fishScript, zshScript } = await import("../completion-scripts.js");
      const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };
      const completion = await completionOf(program);
      return abilities.terminal.out(options.json ? `${wordsAsJson(completion)}\n` : scripts[shell](completion));
    })
    .addHelpText(
      "after",
      `
Examples:
  holdfast completion bash > /etc/bash_completion.d/holdfast
  holdfast completion zsh >> ~/.zshrc
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish`,
    );
};

function wordsAsJson({ places, settings }: Completion): string {
  const named = places.map(({ path, words, takesSettings }) => [
    path,
    [...words, ...(takesSettings ? settings : [])].map(({ word }) => word),
  ]);
  return JSON.stringify(Object.fromEntries(named));
}

async function completionOf(program: Command): Promise<Completion> {
  const [{ settingFlags }, { shortAbout }] = await Promise.all([
    import("../flags.js"),
    import("../completion-scripts.js"),
  ]);
  const wordOf = (word: string, about: string): Word => ({ word, about: shortAbout(about) });
  const settings = new Map<string, Word>();
  const placesOf = (command: Command, path: string): Place[] => {
    const ofSettings = settingFlags(command);
    for (const { long, description } of ofSettings) if (long) settings.set(long, wordOf(long, description));
    const own: Place = {
      path,
      words: [
        ...command.commands.map((child) => wordOf(child.name(), child.description())),
        ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
          argChoices.map((choice) => wordOf(choice, description)),
        ),
        ...command.options.flatMap((option) =>
          option.long && !ofSettings.includes(option) ? [wordOf(option.long, option.description)] : [],
        ),
        wordOf("--help", "what this command does and takes"),
      ],
      takesSettings: ofSettings.length > 0,
    };
    return [own, ...command.commands.flatMap((child) => placesOf(child, `${path} ${child.name()}`.trim()))];
  };
  return { places: placesOf(program, ""), settings: [...settings.values()] };
}

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
