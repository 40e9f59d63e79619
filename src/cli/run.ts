// The command line: builds the program from its verbs, runs one, answers an exit code: 0 done, 1 failed, 2 called wrongly.

import { Command, CommanderError } from "commander";
import { sourceStack } from "../base/one-file.js";
import { systemCode, systemErrorSentence, thisMachine } from "../base/system-error.js";
import { escapeControls } from "../base/text.js";
import { type Abilities, CommandFailure, type Verb } from "./abilities.js";

/** `complete`: the verbs that are loaded, with their arguments and flags; of the others only the names are known. */
export async function buildProgram(
  abilities: Abilities,
  complete: readonly string[] = Object.keys(verbs),
): Promise<Command> {
  const program = new Command("holdfast")
    .description("A GRASP server: a Nostr relay and a git host on one port.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void abilities.terminal.out(text),
      writeErr: (text) => abilities.terminal.error(text),
      // Wrong arguments are told where everything that went wrong is told.
      outputError: () => undefined,
      getOutHelpWidth: () => Math.min(120, Math.max(60, abilities.terminal.columns)),
    })
    .enablePositionalOptions()
    .version(abilities.build.version, "-V, --version", "print the version number");
  program.addHelpText(
    "after",
    `
Examples:
  holdfast                                   start a server on 127.0.0.1:7334 with its data in ./data
  holdfast init hello                        publish a first repository there, from another terminal
  holdfast serve --domain git.example.com --bind-address 0.0.0.0:7334
  holdfast config check --config /etc/holdfast.conf
  holdfast status --json

Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration.`,
  );
  const loading = Object.entries(verbs).map(async ([name, load]) => ({
    name,
    add: complete.includes(name) ? await load() : undefined,
  }));
  for (const { name, add } of await Promise.all(loading)) {
    if (add) add(program, abilities);
    else program.command(name);
  }
  return program;
}

/** The verbs this call needs: the one it names, all where they are listed, and the server where it names none. */
function neededVerbs([first = "", ...rest]: readonly string[]): readonly string[] | undefined {
  if (first === "completion" || first === "help") return undefined;
  if (Object.hasOwn(verbs, first)) return [first];
  return [first, ...rest].some((word) => word === "--help" || word === "-h") ? undefined : ["serve"];
}

/** Asked by test suites that hand the server an open socket (NGIT_TEST_LISTENER_FD), and answered with its version. */
const listenerSupport = { flag: "--internal-test-listener-support", answer: "ngit-test-listener-v1" };

export async function runCommandLine(argv: readonly string[], abilities: Abilities): Promise<number> {
  if (argv.length === 3 && argv[2] === listenerSupport.flag) {
    await abilities.terminal.out(`${listenerSupport.answer}\n`);
    return 0;
  }
  const asJson = argv.includes("--json");
  try {
    const program = await buildProgram(abilities, neededVerbs(argv.slice(2)));
    await program.parseAsync([...argv]);
    return 0;
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0;
    const failure = failureOf(error, argv.slice(2), abilities);
    // Without a message the command has said everything itself.
    if (failure.message === "") return failure.exitCode;
    if (asJson) {
      await abilities.terminal.out(`${JSON.stringify({ ok: false, error: failure.message, ...failure.details })}\n`);
    } else {
      abilities.terminal.error(`holdfast: ${escapeControls(failure.message)}\n`);
    }
    return failure.exitCode;
  }
}

/** Commander's words as a sentence of ours. */
function wrongCall({ code, message }: CommanderError): CommandFailure {
  // A group of verbs was called without one of them: its help is on standard error already.
  if (code === "commander.help") return new CommandFailure("", 2);
  const [fault = "", suggestion] = message.replace(/^error: /, "").split("\n");
  const meant = suggestion === undefined ? "" : ` ${suggestion.replace(/^\(|\)$/g, "")}`;
  const sentences = `${fault.replace(/\.$/, "")}.${meant} Add --help for the arguments`;
  return new CommandFailure(sentences, 2, { code: "bad-request" });
}

/** Errors of the rooms that say themselves what to do. By name: a verb must not load a room to compare classes. */
const saysWhatToDo = new Set([
  "BackupRefusal",
  "ClusterRefusal",
  "GitTooOldError",
  "OneOffFailure",
  "PackStoreError",
  "PublishRefusal",
  "StartRefusal",
  "StoreFullError",
  "StoreRefusal",
]);

/** The one boundary of all verbs: whatever went wrong becomes a sentence and an exit code, never a stack. */
export function failureOf(
  error: unknown,
  typed: readonly string[],
  { environment }: Pick<Abilities, "environment">,
): CommandFailure {
  if (error instanceof CommandFailure) return error;
  if (error instanceof CommanderError) return wrongCall(error);
  const sentence = systemErrorSentence(error, thisMachine(typed));
  if (sentence !== undefined) return new CommandFailure(sentence, 1, { code: systemCode(error) });
  if (error instanceof Error && saysWhatToDo.has(error.name)) return new CommandFailure(error.message);
  const isDebugging = /^(?:debug|trace)$/.test(environment.NGIT_LOG_LEVEL ?? "") || typed.includes("--log-level=debug");
  const told =
    error instanceof Error
      ? (isDebugging && error.stack && sourceStack(error.stack)) || `${error.name}: ${error.message}`
      : String(error);
  const advice = isDebugging ? "" : ". NGIT_LOG_LEVEL=debug shows where; please report it";
  return new CommandFailure(`this is a fault of the program: ${told}${advice}`, 1, { code: "fault" });
}

/**
 * In the order of the help. A verb is loaded when it is called or when all are listed: `holdfast version` must not wait
 * for the rooms of a backup.
 */
const verbs: Readonly<Record<string, () => Promise<Verb>>> = {
  serve: async () => (await import("./verbs/serve.js")).serve,
  init: async () => (await import("./verbs/publish.js")).init,
  publish: async () => (await import("./verbs/publish.js")).publishing,
  config: async () => (await import("./verbs/serve.js")).config,
  doctor: async () => (await import("./verbs/health.js")).doctor,
  status: async () => (await import("./verbs/health.js")).status,
  repos: async () => (await import("./verbs/repos.js")).repos,
  purgatory: async () => (await import("./verbs/operations.js")).purgatory,
  relays: async () => (await import("./verbs/operations.js")).relays,
  why: async () => (await import("./verbs/operations.js")).why,
  lists: async () => (await import("./verbs/operations.js")).lists,
  ban: async () => (await import("./verbs/operations.js")).ban,
  unban: async () => (await import("./verbs/operations.js")).unban,
  tokens: async () => (await import("./verbs/operations.js")).tokens,
  admin: async () => (await import("./verbs/operations.js")).admin,
  events: async () => (await import("./verbs/events.js")).events,
  sync: async () => (await import("./verbs/operations.js")).sync,
  mirror: async () => (await import("./verbs/mirror.js")).mirror,
  backup: async () => (await import("./verbs/backup.js")).backup,
  restore: async () => (await import("./verbs/backup.js")).restore,
  compact: async () => (await import("./verbs/backup.js")).compact,
  cluster: async () => (await import("./verbs/cluster.js")).cluster,
  bench: async () => (await import("./verbs/bench.js")).bench,
  completion: async () => (await import("./verbs/program.js")).completion,
  version: async () => (await import("./verbs/program.js")).version,
};
