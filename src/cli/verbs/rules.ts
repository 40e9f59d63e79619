// What an operator rules: `holdfast lists` (white- and blacklists), `ban` and `unban`, in force at once and after a
// restart; and `admin link|audit`, a way into the operator's pages and who changed what.

import { Argument } from "commander";
import { type Banned, type BanResult, banTypes } from "../../operator/bans.js";
import type { AuditRow } from "../../operator/context.js";
import type { ListedEntry } from "../../operator/lists.js";
import { listNames } from "../../operator/rules.js";
import type { Verb } from "../abilities.js";
import { wholeNumberOption } from "../flags.js";
import { operatorCommand } from "../operate.js";
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

const typeArgument = (): Argument => new Argument("<type>", "what is named").choices(banTypes);
const targetHelp = "npub; event id; npub/identifier; IP address or CIDR network";

export const ban: Verb = (program, abilities) => {
  operatorCommand<BanResult>(program, abilities, {
    name: "ban",
    description: "remove what is stored of a key, event or repository and keep it out; refuse a network",
    examples: [
      'holdfast ban key npub1… --reason "spam"',
      "holdfast ban event nevent1…",
      "holdfast ban repository npub1…/my-project",
      "holdfast ban ip 203.0.113.0/24",
    ],
    operation: "ban",
    parameters: ([type, target], { reason }) => ({ type, target, reason }),
    text: ({ target, removedEvents }) => `${target} is banned; ${removedEvents} events removed`,
  })
    .addArgument(typeArgument())
    .argument("<target>", targetHelp)
    .option("--reason <text>", "why, shown in the list of bans");
};

export const unban: Verb = (program, abilities) => {
  operatorCommand<{ target: string }>(program, abilities, {
    name: "unban",
    description: "lift a ban; what it removed is sent again by its author or brought back by `repos restore`",
    examples: ["holdfast unban key npub1…", "holdfast unban ip 203.0.113.0/24"],
    operation: "unban",
    parameters: ([type, target]) => ({ type, target }),
    text: ({ target }) => `${target} is not banned any more`,
  })
    .addArgument(typeArgument())
    .argument("<target>", targetHelp);
};

export const admin: Verb = (program, abilities) => {
  const parent = program.command("admin").description("log in as operator; look at the audit log");

  operatorCommand<{ url: string; minutes: number }>(parent, abilities, {
    name: "link",
    description: "print a link that logs one browser in as operator, once, within ten minutes",
    examples: ["holdfast admin link"],
    operation: "admin.link",
    parameters: () => ({}),
    text: ({ url }) => url,
  });

  operatorCommand<{ changes: readonly AuditRow[] }>(parent, abilities, {
    name: "audit",
    description: "show what operators changed, newest first",
    examples: ["holdfast admin audit", "holdfast admin audit --limit 1000 --json"],
    operation: "audit.list",
    parameters: (_, { limit }) => ({ limit }),
    text: ({ changes }) =>
      changes.length === 0
        ? "nothing was changed yet"
        : tableText(
            ["AT (UTC)", "WHO", "VIA", "WHAT", "TARGET", "REASON"],
            changes.map(({ at, who, via, what, target, reason }) => [timeText(at), who, via, what, target, reason]),
          ),
  }).addOption(wholeNumberOption("--limit <count>", "at most so many; 100 if left out"));
};
