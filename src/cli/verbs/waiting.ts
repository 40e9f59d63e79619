// Why something is not here: `holdfast purgatory` shows what waits for its git data, why, and until when; `holdfast why`
// tells which rule accepted, held or refused an event, and how it stands now.

import type { WaitingLine, WaitingList } from "../../operator/purgatory.js";
import type { Explanation } from "../../operator/status.js";
import type { Verb } from "../abilities.js";
import { operatorVerb } from "../operator-verb.js";
import { lineText, tableText, timeText } from "../table.js";

export const purgatory: Verb = (program, abilities) => {
  const parent = program.command("purgatory").description("events that wait for their git data");
  operatorVerb(parent, abilities, "purgatory.list", { text: waitingText });
  operatorVerb(parent, abilities, "purgatory.ask", {
    text: ({ repository }) => `the git servers of ${repository} are asked again`,
  });
  operatorVerb(parent, abilities, "purgatory.drop", { text: ({ event }) => `${event} waits no more` });
};

export const why: Verb = (program, abilities) => {
  operatorVerb(program, abilities, "why", { text: explanationText });
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
