// How many entries of each kind wait, counted when somebody asks.

import type { EntryKind, WaitingEntry, WaitingPhase } from "../admission/waiting.js";
import type { TableReader } from "../store/port.js";
import type { EntryCounts } from "./metrics.js";

export async function countEntries(reader: TableReader): Promise<EntryCounts> {
  const counts = new Map<`${EntryKind}:${WaitingPhase}`, number>();
  for await (const [, entry] of reader.rows<WaitingEntry>("purgatory", { prefix: "e:" })) {
    const key = `${entry.kind}:${entry.phase}` as const;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}
