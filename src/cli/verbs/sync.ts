// `holdfast sync <relay>`: compares the store with one relay once and brings over what either side lacks. A running
// server does it itself, asked over the admin socket; else the verb opens the data.

import { Option } from "commander";
import type { SyncedRelay } from "../../admin/relay-sync.js";
import type { Verb } from "../abilities.js";
import { acceptFilters, filtersOf } from "../event-filters.js";
import { operatorCommand } from "../operator-command.js";

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
};

function tallyText(tally: SyncedRelay): string {
  const refused = Object.entries(tally.refusedHere).map(([code, count]) => `  ${code} ${count}`);
  return [
    `missing here ${tally.missingHere}: ${tally.stored} taken, ${tally.known} known already`,
    ...refused,
    `missing there ${tally.missingThere}: ${tally.sent} sent, ${tally.refusedThere} refused`,
  ].join("\n");
}
