// What follows when a waiting announcement is withdrawn or deleted: its entry goes, and its repository with it.

import type { RepositoryName } from "../catalogue/repositories.js";
import { type CatalogueRow, deletedRow } from "../catalogue/repositories.js";
import { type WaitingEntry, waitingEvent } from "../catalogue/waiting.js";
import type { Change, RepositoryChange, UnholdCause } from "./policy.js";

export interface EndOfWait {
  readonly changes: readonly Change[];
  readonly repositories: readonly RepositoryChange[];
}

export function endOfWait(
  entry: WaitingEntry,
  name: RepositoryName,
  row: CatalogueRow | undefined,
  cause: UnholdCause,
  nowSeconds: number,
): EndOfWait {
  const unhold: Change = { type: "unhold", id: entry.id, cause };
  if (row?.status !== "waiting" && row?.status !== "soft") return { changes: [unhold], repositories: [] };
  // It was served once (deleted, announced again): its data is kept for the grace period. A mark alone says only that
  // something was pushed that never was enough.
  if (row.governing !== null) {
    return {
      changes: [unhold, { type: "catalogue", row: deletedRow(row, waitingEvent(entry), nowSeconds) }],
      repositories: [{ name, to: "delete" }],
    };
  }
  return {
    changes: [unhold, { type: "uncatalogue", name }],
    repositories: row.status === "waiting" ? [{ name, to: "remove" }] : [],
  };
}
