// The reference pages that are made from the program itself: commands from the command tree, refusals from their table.

import type { Command } from "commander";
import { sections } from "../config/schema.js";
import { type RefusalCode, refusalMeanings, refusalPrefixes } from "../nostr/refusals.js";
import { methods } from "../operator/nip86.js";
import type { Abilities } from "./abilities.js";
import { buildProgram } from "./run.js";

const generated = "Written by `node scripts/generate-docs.mjs` from the program itself; do not edit.";

export async function cliPage(): Promise<string> {
  const lines = [
    "# Command line",
    "",
    generated,
    "",
    "Every command knows `--help` and `--json`. Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration.",
    "Answers go to standard output, everything else (log, warnings, progress bars) to standard error.",
    "",
    "`purgatory`, `relays`, `repos`, `why`, `lists`, `ban`, `unban`, `tokens`, `admin`, `events`, `sync`, `mirror` and `backup`",
    "ask the running server over `admin.sock` in its relay data directory; when none runs they open the data themselves.",
    "",
    "`compact`, `restore` and `repos import` open the data directory themselves and need the server to be stopped:",
    "the directory has one user at a time, guarded by the file `holdfast.lock` in it. The lock of a process that died is",
    "taken over.",
  ];
  const program = await buildProgram(silent as Abilities);
  const visit = (command: Command, path: string): void => {
    const written: string[] = [];
    command.configureOutput({ writeOut: (part) => void written.push(part), getOutHelpWidth: () => 100 });
    command.outputHelp();
    lines.push("", `## ${path}`, "", "```", withoutSettings(written.join("")).trimEnd(), "```");
    for (const child of command.commands) visit(child, `${path} ${child.name()}`);
  };
  visit(program, "holdfast");
  return `${lines.join("\n")}\n`;
}

/** `serve --help` lists all settings; here they have a page of their own. */
function withoutSettings(help: string): string {
  const first = help.indexOf(`\n${sections[0]?.title}:\n`);
  const end = help.indexOf("\nSignals:");
  if (first < 0 || end < 0) return help;
  return `${help.slice(0, first)}\nAll settings of configuration.md are flags too.\n${help.slice(end)}`;
}

/** Help needs a version and a place to write; nothing else is called. */
const silent: Pick<Abilities, "build" | "terminal"> = {
  build: { version: "", commit: "" },
  terminal: {
    out: async () => undefined,
    error: () => undefined,
    showsProgress: false,
    columns: 100,
    async *lines() {},
  },
};

export function refusalsPage(): string {
  const rows = Object.entries(refusalPrefixes).map(
    ([code, prefix]) => `| \`${code}\` | \`${prefix}:\` | ${refusalMeanings[code as RefusalCode]} |`,
  );
  return `${[
    "# Refusals",
    "",
    generated,
    "",
    "Each reason for which something is refused has one code. It is the `reason` of the metric and stands in the log;",
    "clients see the prefix, followed by a sentence that says what to do.",
    "",
    "| code | prefix | meaning |",
    "|---|---|---|",
    ...rows,
  ].join("\n")}\n`;
}

/** Relay management over HTTP: the standard's methods that work here, and ours. */
export function managementPage(): string {
  const rows = Object.entries(methods).map(
    ([method, [parameters, does]]) => `| \`${method}\` | ${parameters} | ${does} |`,
  );
  return `${[
    "# Relay management (NIP-86) and `/api`",
    "",
    generated,
    "",
    'POST to the relay\'s own URL with `Content-Type: application/nostr+json+rpc`, a body of `{"method","params"}` and a',
    "NIP-98 token (`Authorization: Nostr …`) by a key in `NGIT_ADMIN_NPUBS`. A token is good for one request within 60",
    'seconds, names the URL under `NGIT_DOMAIN`, the method and the hash of the body. The answer is `{"result"}` or',
    '`{"error"}`.',
    "",
    "| method | parameters | what it does |",
    "|---|---|---|",
    ...rows,
    "",
    "GET with such a token, or with the session of `holdfast admin link`: `/api/status`, `/api/purgatory`, `/api/repos`,",
    "`/api/repos/<npub>/<identifier>`, `/api/why/<event id or npub/identifier>`, `/api/relays`, `/api/lists`, `/api/bans`,",
    "`/api/audit`, `/api/tokens`.",
    "Everybody else gets 401, and from `/api/status` counts.",
  ].join("\n")}\n`;
}
