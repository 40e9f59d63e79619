// `holdfast why`: which rule accepted, held or refused an event, and how it stands now.

import type { Explanation } from "../../operator/status.js";
import type { Verb } from "../abilities.js";
import { operatorCommand } from "../operator-command.js";
import { wholeNumberOption } from "../options.js";
import { lineText, timeText } from "../table.js";

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
