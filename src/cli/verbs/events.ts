// `holdfast events import|export|scan|delete`: JSONL in and out of the event store, whether the server runs or not.

import type { Command } from "commander";
import type { Deleted, Scanned } from "../../operator/events.js";
import { CommandFailure, type Verb } from "../abilities.js";
import { acceptFilters, filtersOf } from "../event-filters.js";
import { operatorCommand } from "../operator-command.js";
import { addExport } from "./events-export.js";
import { addImport } from "./events-import.js";

export const events: Verb = (program, abilities) => {
  const parent = program.command("events").description("import, export, scan and delete events as JSONL");
  addImport(parent, abilities);
  addExport(parent, abilities);
  acceptFilters(
    operatorCommand<Scanned>(parent, abilities, {
      name: "scan",
      description: "count events by kind",
      examples: [`holdfast events scan --filter '{"since":1700000000}'`],
      operation: "events.scan",
      parameters: (_, options) => ({ filters: filtersOf(options) }),
      text: ({ events: count, bytes, byKind }) =>
        [
          ...Object.entries(byKind).map(([kind, number]) => `kind ${kind.padStart(5)}  ${number}`),
          `${count} events, ${bytes} bytes`,
        ].join("\n"),
    }),
  );
  const remove: Command = operatorCommand<Deleted>(parent, abilities, {
    name: "delete",
    description: "remove events; without --yes only say how many",
    examples: [`holdfast events delete --filter '{"authors":["…"]}' --yes`],
    operation: "events.delete",
    parameters: (_, options) => {
      const filters = filtersOf(options);
      if (filters.length === 0) throw new CommandFailure("say which events with --filter; '{}' means all of them", 2);
      return { filters, really: options.yes === true };
    },
    text: ({ matching, deleted }) =>
      remove.getOptionValue("yes") ? `${deleted} events deleted` : `${matching} events match; add --yes to delete them`,
  });
  acceptFilters(remove).option("--yes", "really remove them");
};
