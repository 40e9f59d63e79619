// `holdfast events import|export|scan|delete`: JSONL in and out of the event store, while the server is stopped.

import type { Command } from "commander";
import type { Abilities, Verb } from "../abilities.js";
import { acceptFilters } from "../event-filters.js";
import { acceptSettings } from "../setting-flags.js";
import { deleteEvents } from "./events-delete.js";
import { exportEvents, scanEvents } from "./events-export.js";
import { importEvents } from "./events-import.js";

type Work = (command: Command, abilities: Abilities) => Promise<void>;

export const events: Verb = (program, abilities) => {
  const parent = program
    .command("events")
    .description("import, export, scan and delete events as JSONL (the server must be stopped)");
  const add = (name: string, description: string, example: string, work: Work): Command => {
    const command = parent.command(name).description(description).option("--json", "answer as JSON");
    command.addHelpText("after", `\nExample:\n  ${example}`);
    return acceptSettings(command).action(() => work(command, abilities));
  };

  add(
    "import",
    "read events, one JSON object a line, through the same door as everyone's",
    "holdfast events import events.jsonl",
    importEvents,
  ).argument("[file]", "file to read; standard input if left out");
  acceptFilters(
    add(
      "export",
      "write events, one JSON object a line, newest first",
      `holdfast events export --filter '{"kinds":[30617]}' --output repos.jsonl`,
      exportEvents,
    ),
  ).option("--output <file>", "file to write, which must not exist; standard output if left out");
  acceptFilters(
    add("scan", "count events by kind", `holdfast events scan --filter '{"since":1700000000}'`, scanEvents),
  );
  acceptFilters(
    add(
      "delete",
      "remove events; without --yes only say how many",
      `holdfast events delete --filter '{"authors":["…"]}' --yes`,
      deleteEvents,
    ),
  ).option("--yes", "really remove them");
};
