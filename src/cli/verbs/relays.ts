// `holdfast relays list|reconnect|ignore|unignore`: the relays sync follows.

import type { RelayList } from "../../operator/relays.js";
import type { Verb } from "../abilities.js";
import { operatorCommand } from "../operator-command.js";
import { tableText, timeText } from "../table.js";

export const relays: Verb = (program, abilities) => {
  const parent = program.command("relays").description("relays the server keeps in step with");

  operatorCommand<RelayList>(parent, abilities, {
    name: "list",
    description: "list followed relays with state, last failure and next attempt, and those that are ignored",
    examples: ["holdfast relays list", "holdfast relays list --json"],
    operation: "relays.list",
    parameters: () => ({}),
    text: relaysText,
  });

  operatorCommand<{ relay: string }>(parent, abilities, {
    name: "reconnect",
    description: "dial a relay now, whatever its back-off",
    examples: ["holdfast relays reconnect wss://relay.example.com"],
    operation: "relays.reconnect",
    parameters: ([relay]) => ({ relay }),
    text: ({ relay }) => `${relay} is dialled now`,
  }).argument("<relay>", "its URL");

  operatorCommand<{ relay: string }>(parent, abilities, {
    name: "ignore",
    description: "leave a relay alone, at once and after a restart",
    examples: ['holdfast relays ignore wss://relay.example.com --reason "sends nothing but spam"'],
    operation: "relays.ignore",
    parameters: ([relay], { reason }) => ({ relay, reason }),
    text: ({ relay }) => `${relay} is left alone from now on`,
  })
    .argument("<relay>", "its URL")
    .option("--reason <text>", "why, shown in the list");

  operatorCommand<{ relay: string }>(parent, abilities, {
    name: "unignore",
    description: "follow a relay again",
    examples: ["holdfast relays unignore wss://relay.example.com"],
    operation: "relays.unignore",
    parameters: ([relay]) => ({ relay }),
    text: ({ relay }) => `${relay} is followed again, if a repository here lists it`,
  }).argument("<relay>", "its URL");
};

function relaysText({ relays: followed, ignored }: RelayList): string {
  const rows = followed
    .filter((relay) => !relay.ignored)
    .map(({ url, relay, state, health, lastFailure, nextAttemptSeconds }) => [
      url ?? relay,
      state,
      health,
      lastFailure ? `${lastFailure.kind}, ${timeText(lastFailure.at)}` : "-",
      nextAttemptSeconds === null ? "-" : `in ${nextAttemptSeconds} s`,
    ]);
  const left = ignored.map(({ relay, since, reason }) => [relay, "ignored", "-", `since ${timeText(since)}`, reason]);
  if (rows.length + left.length === 0) return "no relay is followed";
  return tableText(["RELAY", "STATE", "HEALTH", "LAST FAILURE (UTC)", "NEXT ATTEMPT"], [...rows, ...left]);
}
