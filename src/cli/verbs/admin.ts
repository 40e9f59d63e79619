// `holdfast admin link|audit`: a way into the running server's operator pages, and who changed what.

import type { AuditRow } from "../../operator/context.js";
import type { Verb } from "../abilities.js";
import { operatorCommand } from "../operator-command.js";
import { wholeNumberOption } from "../options.js";
import { tableText, timeText } from "../table.js";

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
