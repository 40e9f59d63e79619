// Why something is not here: `holdfast purgatory` shows what waits for its git data, why, and until when; `holdfast why`
// tells which rule accepted, held or refused an event, and how it stands now.

import type { WaitingLine, WaitingList } from "../../operator/purgatory.js";
import type { Explanation } from "../../operator/status.js";
import type { Verb } from "../abilities.js";
import { wholeNumberOption } from "../flags.js";
import { operatorCommand } from "../operate.js";
import { lineText, tableText, timeText } from "../table.js";

export const purgatory: Verb = (program, abilities) => {
  const parent = program.command("purgatory").description("events that wait for their git data");
  operatorCommand<WaitingList>(parent, abilities, {
    name: "list",
    description: "list what waits, why, what is missing, where it came from and when it expires",
    examples: [
      "holdfast purgatory list",
      "holdfast purgatory list --repository npub1…/my-project",
      "holdfast purgatory list --limit 1000 --json",
    ],
    operation: "purgatory.list",
    parameters: (_, { repository, limit }) => ({ repository, limit }),
    text: waitingText,
  })
    .option("--repository <npub/identifier>", "only what concerns this repository")
    .addOption(wholeNumberOption("--limit <count>", "at most so many; 100 if left out"));

  operatorCommand<{ repository: string }>(parent, abilities, {
    name: "ask",
    description: "ask the git servers of a repository again now for what is missing",
    examples: ["holdfast purgatory ask npub1…/my-project"],
    operation: "purgatory.ask",
    parameters: ([repository]) => ({ repository }),
    text: ({ repository }) => `the git servers of ${repository} are asked again`,
  }).argument("<npub/identifier>", "the repository");

  operatorCommand<{ event: string }>(parent, abilities, {
    name: "drop",
    description: "take a waiting event out; it may come again (to keep it away: ban event)",
    examples: ["holdfast purgatory drop nevent1…"],
    operation: "purgatory.drop",
    parameters: ([event]) => ({ event }),
    text: ({ event }) => `${event} waits no more`,
  }).argument("<event>", "event id, note or nevent");
};

function waitingText({ totals, waiting, more }: WaitingList): string {
  const sum = `${totals.entries} events wait (${totals.bytes} bytes)`;
  if (waiting.length === 0) return sum;
  const head = ["KIND", "PHASE", "EXPIRES (UTC)", "FROM", "EVENT", "REPOSITORY", "WHY"];
  const table = tableText(head, waiting.map(cells));
  return `${table}\n${sum}${more ? "; not all are shown, raise --limit" : ""}`;
}

function cells(line: WaitingLine): string[] {
  const missing = (line.missing ?? []).slice(0, 3).map((oid) => oid.slice(0, 12));
  const rest = (line.missing?.length ?? 0) - missing.length;
  const objects = missing.length > 0 ? ` (${missing.join(" ")}${rest > 0 ? ` and ${rest} more` : ""})` : "";
  const asked = line.asked.map(({ url, answer }) => `; ${url}: ${answer}`).join("");
  return [
    line.kind,
    line.phase,
    timeText(line.expires),
    line.relay ?? line.source,
    line.id,
    line.repositories.join(" "),
    `${line.why}${objects}${asked}`,
  ];
}

export const why: Verb = (program, abilities) => {
  operatorCommand<Explanation>(program, abilities, {
    name: "why",
    description: "tell which rule accepted, held or refused an event, or the events of a repository",
    examples: ["holdfast why nevent1…", "holdfast why npub1…/my-project --limit 50", "holdfast why <event id> --json"],
    operation: "why",
    parameters: ([subject], { limit }) => ({ subject, limit }),
    text: explanationText,
  })
    .argument("<subject>", "event id (hex, note, nevent) or repository (npub/identifier, naddr)")
    .addOption(wholeNumberOption("--limit <count>", "decisions about a repository, newest first; 20 if left out"));
};

function explanationText({ subject, now, decisions }: Explanation): string {
  const lines = [subject, ...now.map((sentence) => `  now: ${sentence}`)];
  for (const record of decisions) {
    const from = record.relay ? `${record.source} (${record.relay})` : record.source;
    const code = record.code === null ? "" : ` with code ${record.code}`;
    lines.push(`  ${timeText(record.at)} UTC: ${record.outcome} by rule ${record.rule}${code}`);
    lines.push(`    event ${record.id}, kind ${record.kind}, from ${from}`);
    if (record.message !== "") lines.push(`    ${record.message}`);
    const facts = Object.entries(record.facts).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    if (facts.length > 0) lines.push(`    ${facts.join(" ")}`);
  }
  return lines.map(lineText).join("\n");
}
