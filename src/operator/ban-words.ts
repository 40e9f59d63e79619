// What a ban would take away and what lifting it could bring back, in sentences: the same ones for the verb and the
// admin page. Pure, and light enough for a verb to load.

import { counted } from "../base/text.js";
import type { BanPreview } from "./ban-targets.js";

/** What would go; the repositories are named by whoever shows it. */
export function banSummary({ type, target, isBanned, events, waiting }: BanPreview): string {
  if (type === "ip") return `Connections and requests from ${target} would be refused from now on.`;
  const gone = [
    counted(events, "stored event", "stored events"),
    ...(waiting > 0 ? [counted(waiting, "waiting event", "waiting events")] : []),
  ];
  return `${target} would be banned${isBanned ? " (it is already)" : ""}. This would go: ${gone.join(" and ")}.`;
}

export const unservedWords = "These repositories would not be served any more:";

export const comingBackWords = ({ graceDays }: BanPreview): string =>
  `What goes can be brought back within ${counted(graceDays, "day", "days")}.`;

export function unbanSummary({ target, isBanned, restorable, graceDays }: BanPreview): string {
  const kept =
    restorable === 0
      ? "Nothing that it removed is kept."
      : `${counted(restorable, "thing it removed is", "things it removed are")} kept for ${counted(graceDays, "day", "days")} after the ban.`;
  return `The ban of ${target} would be lifted${isBanned ? "" : " (it is not banned now)"}. ${kept}`;
}

/** Of events that could not be brought back now. */
export const stillKeptWords = (kept: number): string =>
  `${counted(kept, "event is", "events are")} kept: \`holdfast unban --restore\` tries again`;

export const nothingRestored = (target: string, cause: string, kept: number): string =>
  `the ban of ${target} is lifted, but nothing it removed could be restored (${cause}). ${stillKeptWords(kept)}`;
