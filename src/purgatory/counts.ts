// How many entries of each kind wait, counted when somebody asks.

import type { WaitingEntry } from "../catalogue/waiting.js";
import type { TableReader } from "../store/port.js";
import type { EntryCounts, EntryLabel } from "./metrics.js";

export async function countEntries(reader: TableReader): Promise<EntryCounts> {
  const counts = new Map<EntryLabel, number>();
  for await (const [, entry] of reader.rows<WaitingEntry>("purgatory", { prefix: "e:" })) {
    const key = `${entry.kind}:${entry.phase}` as const;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  // Data that came before its event.
  for await (const _row of reader.rows("purgatory", { prefix: "g:" })) {
    counts.set("placeholder:waiting", (counts.get("placeholder:waiting") ?? 0) + 1);
  }
  return counts;
}
