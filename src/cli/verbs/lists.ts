// `holdfast lists show|add|remove`: white- and blacklists, in force at once and after a restart.

import { Argument } from "commander";
import type { Banned } from "../../operator/bans.js";
import type { ListedEntry } from "../../operator/lists.js";
import { listNames } from "../../operator/rules.js";
import type { Verb } from "../abilities.js";
import { operatorCommand } from "../operator-command.js";
import { tableText, timeText } from "../table.js";

const entryHelp =
  "npub, npub/identifier or identifier (event-blacklist: npub only; archive-grasp-services: host[:port])";
const listArgument = (flags: string): Argument => new Argument(flags, "which list").choices(listNames);

export const lists: Verb = (program, abilities) => {
  const parent = program.command("lists").description("white- and blacklists of keys and repositories");

  operatorCommand<{ entries: readonly ListedEntry[] }>(parent, abilities, {
    name: "show",
    description: "show the lists: what is configured and what was added at run time",
    examples: ["holdfast lists show", "holdfast lists show repository-whitelist --json"],
    operation: "lists.show",
    parameters: ([list]) => ({ list }),
    text: ({ entries }) => listText(entries),
  }).addArgument(listArgument("[list]"));

  operatorCommand<{ added: boolean; entry: string }>(parent, abilities, {
    name: "add",
    description: "add an entry; the first entry of the repository-whitelist closes the server to everybody else",
    examples: [
      'holdfast lists add repository-blacklist npub1… --reason "spam"',
      "holdfast lists add repository-whitelist npub1…/my-project",
      "holdfast lists add archive-grasp-services git.example.com",
    ],
    operation: "lists.add",
    parameters: ([list, entry], { reason }) => ({ list, entry, reason }),
    text: ({ added, entry }) => (added ? `${entry} added, in force now` : `${entry} was on the list already`),
  })
    .addArgument(listArgument("<list>"))
    .argument("<entry>", entryHelp)
    .option("--reason <text>", "why, shown in the list");

  operatorCommand<{ entry: string }>(parent, abilities, {
    name: "remove",
    description: "remove an entry that was added at run time",
    examples: ["holdfast lists remove repository-blacklist npub1…"],
    operation: "lists.remove",
    parameters: ([list, entry]) => ({ list, entry }),
    text: ({ entry }) => `${entry} removed, in force now`,
  })
    .addArgument(listArgument("<list>"))
    .argument("<entry>", entryHelp);

  operatorCommand<{ bans: readonly Banned[] }>(parent, abilities, {
    name: "bans",
    description: "show what `holdfast ban` banned",
    examples: ["holdfast lists bans", "holdfast lists bans --json"],
    operation: "bans.list",
    parameters: () => ({}),
    text: ({ bans }) =>
      bans.length === 0
        ? "nothing is banned"
        : tableText(
            ["TYPE", "SINCE (UTC)", "TARGET", "REASON"],
            bans.map(({ type, since, target, reason }) => [type, timeText(since), target, reason]),
          ),
  });
};

function listText(entries: readonly ListedEntry[]): string {
  if (entries.length === 0) return "the lists are empty";
  return tableText(
    ["LIST", "ORIGIN", "SINCE (UTC)", "ENTRY", "REASON"],
    entries.map(({ list, origin, since, entry, reason }) => [
      list,
      origin,
      since === null ? "-" : timeText(since),
      entry,
      reason,
    ]),
  );
}
