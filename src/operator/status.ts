// How the server is: counts of everything. The public subset is counts only (purgatory.md, "Visible").

import { recordCount } from "../catalogue/decisions.js";
import { catalogueRows, type RepositoryStatus } from "../catalogue/repositories.js";
import { type WaitingTotals, waitingTotals } from "../catalogue/waiting.js";
import { type ArchiveUse, archiveUse } from "../purgatory/archive-budget.js";
import type { StoreStats } from "../store/port.js";
import { bansOf } from "./bans.js";
import { showLists } from "./lists.js";
import type { AdminParts, RunningFacts } from "./parts.js";

export interface Status {
  readonly running: boolean;
  readonly server: RunningFacts | null;
  readonly store: StoreStats;
  readonly repositories: Readonly<Record<RepositoryStatus, number>>;
  readonly partialStates: number;
  /** Mirrors (GRASP-05) and their disk budget. */
  readonly archive: ArchiveUse & { readonly maxBytes: number };
  readonly waiting: WaitingTotals;
  readonly placeholders: number;
  readonly bans: number;
  readonly listEntries: number;
  readonly decisions: number;
}

export async function statusOf(parts: AdminParts): Promise<Status> {
  const { store } = parts;
  const repositories = { waiting: 0, soft: 0, served: 0, archived: 0, leaving: 0, deleted: 0 };
  let partialStates = 0;
  for await (const row of catalogueRows(store)) {
    repositories[row.status]++;
    if (row.partial) partialStates++;
  }
  let placeholders = 0;
  for await (const _ of store.rows("purgatory", { prefix: "g:" })) placeholders++;
  const { events, bytesOnDisk, queuedWorks } = store.stats;
  return {
    running: parts.running !== undefined,
    server: parts.running?.facts() ?? null,
    store: { events, bytesOnDisk, queuedWorks },
    repositories,
    partialStates,
    archive: { ...(await archiveUse(store)), maxBytes: parts.config().archiveMaxBytes },
    waiting: await waitingTotals(store),
    placeholders,
    bans: (await bansOf(parts)).length,
    listEntries: showLists(parts).length,
    decisions: await recordCount(store),
  };
}

export interface PublicStatus {
  readonly version: string;
  readonly uptimeSeconds: number;
  readonly events: number;
  readonly repositories: number;
  readonly waiting: number;
}

/** Cheap enough for anybody to ask: nothing is counted here. */
export async function publicStatus(
  { store }: Pick<AdminParts, "store">,
  facts: RunningFacts,
  servedRepositories: number,
): Promise<PublicStatus> {
  return {
    version: facts.version,
    uptimeSeconds: facts.uptimeSeconds,
    events: store.stats.events,
    repositories: servedRepositories,
    waiting: (await waitingTotals(store)).entries,
  };
}
