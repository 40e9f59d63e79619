// `holdfast completion bash|zsh|fish`: scripts made from the program's own commands and flags, so they are never behind;
// and `holdfast version`, which must load nothing.

import { Argument, type Command } from "commander";
import type { Verb } from "../abilities.js";

interface Place {
  /** `events import`; empty for the program itself. */
  readonly path: string;
  readonly words: readonly string[];
}

export const completion: Verb = (program, abilities) => {
  program
    .command("completion")
    .description("print a completion script for a shell")
    .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
    .option("--json", "the words by command, as JSON")
    .action((shell: string, options: { json?: boolean }) => {
      const places = placesOf(program);
      if (options.json) {
        return abilities.terminal.out(
          `${JSON.stringify(Object.fromEntries(places.map(({ path, words }) => [path, words])))}\n`,
        );
      }
      return abilities.terminal.out(shell === "fish" ? fishScript(places) : bashScript(places, shell === "zsh"));
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

function placesOf(command: Command, path = ""): Place[] {
  const commands = command.commands.map((child) => child.name());
  const flags = command.options.flatMap((option) => (option.long ? [option.long] : []));
  const choices = command.registeredArguments.flatMap((argument) => argument.argChoices ?? []);
  const own: Place = { path, words: [...commands, ...choices, ...flags, "--help"] };
  return [own, ...command.commands.flatMap((child) => placesOf(child, `${path} ${child.name()}`.trim()))];
}

function bashScript(places: readonly Place[], forZsh: boolean): string {
  const cases = places.map(({ path, words }) => `    "${path}") words="${words.join(" ")}" ;;`);
  const known = places.map(({ path }) => `"${path}"`).join("|");
  return `${forZsh ? "autoload -U +X bashcompinit && bashcompinit\n" : ""}_holdfast() {
  local path="" word words="" tried
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) continue ;; esac
    tried="\${path:+$path }$word"
    case "$tried" in ${known}) path="$tried" ;; esac
  done
  case "$path" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _holdfast holdfast
`;
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, words }) => {
    const tests = path === "" ? "__fish_use_subcommand" : `__fish_seen_subcommand_from ${path.split(" ").at(-1)}`;
    const flags = words.filter((word) => word.startsWith("--")).map((word) => `-l ${word.slice(2)}`);
    const names = words.filter((word) => !word.startsWith("--"));
    const head = `complete -c holdfast -n '${tests}'`;
    return [
      ...(names.length > 0 ? [`${head} -f -a '${names.join(" ")}'`] : []),
      ...flags.map((flag) => `${head} ${flag}`),
    ];
  });
  return `${lines.join("\n")}\n`;
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
