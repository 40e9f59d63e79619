// `holdfast ban` and `holdfast unban`: keys, events, repositories and networks.

import { Argument } from "commander";
import { type BanResult, banTypes } from "../../operator/bans.js";
import type { Verb } from "../abilities.js";
import { operatorCommand } from "../operator-command.js";

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
