// Other servers: `holdfast relays` for the relays sync follows; `holdfast sync <relay>` compares the store with one relay
// once and brings over what either side lacks; `holdfast sync verify <repository>` compares one repository with every
// copy it lists, and changes nothing.

import { Option } from "commander";
import type { RelayList, SyncedRelay } from "../../operator/relays.js";
import { isSame, type Verified } from "../../operator/verified.js";
import type { Verb } from "../abilities.js";
import { acceptFilters, filtersOf } from "../flags.js";
import { operatorCommand } from "../operate.js";
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

export const sync: Verb = (program, abilities) => {
  const command = operatorCommand<SyncedRelay>(program, abilities, {
    name: "sync",
    description: "compare the store with a relay once, and bring over what is missing",
    examples: [
      "holdfast sync wss://relay.example.com",
      `holdfast sync relay.example.com --dir both --filter '{"kinds":[30617]}' --json`,
    ],
    operation: "sync.relay",
    parameters: ([relay], options) => ({ relay, direction: options.dir, filters: filtersOf(options) }),
    text: tallyText,
  });
  acceptFilters(command)
    .argument("<relay>", "wss://host[:port][/path]; the scheme may be left out")
    .addOption(
      new Option("--dir <direction>", "down: fetch what we lack; up: send what it lacks")
        .choices(["up", "down", "both"])
        .default("down"),
    );

  const verify = operatorCommand<Verified>(command, abilities, {
    name: "verify",
    description:
      "compare a repository's events with every relay it lists and its refs with every clone URL; exit 1 if any differ",
    examples: ["holdfast sync verify npub1…/my-project", "holdfast sync verify naddr1… --json"],
    operation: "sync.verify",
    parameters: ([repository]) => ({ repository }),
    text: verifiedText,
    failsOn: (verified) => !isSame(verified),
  });
  verify.argument("<repository>", "npub/identifier or naddr").addHelpText(
    "after",
    `
Nothing is fetched, sent or changed. Missing here: what is there and not here, without events that wait here or were
refused here. Missing there: what is here and not there. A copy that cannot be compared counts as a difference.`,
  );
};

function verifiedText({ repository, relays, gitServers }: Verified): string {
  if (relays.length + gitServers.length === 0) return `${repository} lists no other copy`;
  const events = relays.map(({ relay, standing, missingHere, missingThere, waitingHere, reason }) => {
    const counts = standing === "same" || standing === "differs";
    const numbers = counts ? [missingHere, missingThere].map(String) : ["-", "-"];
    const waiting = waitingHere > 0 ? `${waitingHere} wait here for git data` : "";
    return [relay, "events", standing, ...numbers, reason ?? waiting];
  });
  const refs = gitServers.map(({ url, standing, differences, differing, refs: count, reason }) => {
    const lacking = (side: "here" | "there"): string =>
      standing === "not compared" ? "-" : String(differences.filter((one) => one[side] === null).length);
    const names = differences.map(({ ref }) => ref.replace(/^refs\/(?:heads|tags)\//, ""));
    const told = differing > 0 ? `${differing} differ: ${names.slice(0, 5).join(", ")}` : `${count} branches and tags`;
    return [url, "refs", standing, lacking("here"), lacking("there"), reason ?? told];
  });
  return tableText(["COPY", "WHAT", "RESULT", "MISSING HERE", "MISSING THERE", ""], [...events, ...refs]);
}

function tallyText(tally: SyncedRelay): string {
  const refused = Object.entries(tally.refusedHere).map(([code, count]) => `  ${code} ${count}`);
  return [
    `missing here ${tally.missingHere}: ${tally.stored} taken, ${tally.known} known already`,
    ...refused,
    `missing there ${tally.missingThere}: ${tally.sent} sent, ${tally.refusedThere} refused`,
  ].join("\n");
}
