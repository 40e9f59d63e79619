// Writes a verdict, in the transaction it was made in: the event first, then the rows that follow, in order. What the
// store did not save changes nothing.

import { forgetId, forgetLeft, rememberLeft } from "../catalogue/remembered.js";
import { repositoryKey, setCatalogueRow } from "../catalogue/repositories.js";
import { refreshListings } from "../catalogue/trusting-repositories.js";
import { putWaiting, removeWaiting } from "../catalogue/waiting.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { PutResult, Transaction } from "../store/port.js";
import type { Change, Verdict } from "./verdict.js";

/**
 * The result of putting the event when the verdict stores it; undefined when it does not. `isReview`: the event is known
 * here and was judged again, so that rows follow even if the store has it.
 */
export async function applyVerdict(
  tx: Transaction,
  event: VerifiedEvent,
  verdict: Verdict,
  nowSeconds: number,
  isReview = false,
): Promise<PutResult | undefined> {
  if (!verdict.ok || verdict.action === "relay" || verdict.action === "known") return undefined;
  const stores = verdict.action === "store" || verdict.action === "leave";
  const put = stores ? await tx.put(event) : undefined;
  if (put && !put.stored && !isReview) return put;
  // Somebody sent it again: what was remembered against it is over.
  forgetId(tx, event.id);
  for (const change of verdict.changes ?? []) await applyChange(tx, change, nowSeconds);
  // It may have waited under another verdict before (a related event whose repository was released since).
  if (stores) await removeWaiting(tx, event.id);
  return put;
}

export async function applyChange(tx: Transaction, change: Change, nowSeconds: number): Promise<void> {
  switch (change.type) {
    case "hold":
      return putWaiting(tx, change.entry);
    case "unhold":
      await removeWaiting(tx, change.id);
      return;
    case "catalogue":
      return setCatalogueRow(tx, change.row);
    case "uncatalogue":
      return tx.deleteRow("catalogue", repositoryKey(change.name));
    case "listings":
      return refreshListings(tx, change.name, nowSeconds);
    case "remove":
      await tx.remove(change.id, change.cause);
      return;
    case "remember-left": {
      const { created_at, id } = change.by;
      return rememberLeft(tx, change.name, { created_at, id, until: change.until });
    }
    case "forget-left":
      return forgetLeft(tx, change.name);
  }
}
