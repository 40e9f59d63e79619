// What an operator rules: `holdfast lists` (white- and blacklists), `ban` and `unban`, in force at once and after a
// restart; and `admin link|audit`, a way into the operator's pages and who changed what.

import type { ListedEntry } from "../../operator/lists.js";
import type { Verb } from "../abilities.js";
import { operatorVerb } from "../operator-verb.js";
import { tableText, timeText } from "../table.js";

export const lists: Verb = (program, abilities) => {
  const parent = program.command("lists").description("white- and blacklists of keys and repositories");
  operatorVerb(parent, abilities, "lists.show", { text: ({ entries }) => listText(entries) });
  operatorVerb(parent, abilities, "lists.add", {
    text: ({ added, entry }) => (added ? `${entry} added, in force now` : `${entry} was on the list already`),
  });
  operatorVerb(parent, abilities, "lists.remove", { text: ({ entry }) => `${entry} removed, in force now` });
  operatorVerb(parent, abilities, "bans.list", {
    text: ({ bans }) =>
      bans.length === 0
        ? "nothing is banned"
        : tableText(
            ["TYPE", "SINCE (UTC)", "TARGET", "REASON"],
            bans.map(({ type, since, target, reason }) => [type, timeText(since), target, reason]),
          ),
  });
};

export const ban: Verb = (program, abilities) => {
  operatorVerb(program, abilities, "ban", {
    text: ({ target, removedEvents }) => `${target} is banned; ${removedEvents} events removed`,
  });
};

export const unban: Verb = (program, abilities) => {
  operatorVerb(program, abilities, "unban", { text: ({ target }) => `${target} is not banned any more` });
};

export const admin: Verb = (program, abilities) => {
  const parent = program.command("admin").description("log in as operator; look at the audit log");
  operatorVerb(parent, abilities, "admin.link", { text: ({ url }) => url });
  operatorVerb(parent, abilities, "audit.list", {
    text: ({ changes }) =>
      changes.length === 0
        ? "nothing was changed yet"
        : tableText(
            ["AT (UTC)", "WHO", "VIA", "WHAT", "TARGET", "REASON"],
            changes.map(({ at, who, via, what, target, reason }) => [timeText(at), who, via, what, target, reason]),
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
