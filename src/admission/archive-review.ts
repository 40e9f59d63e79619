// What a change of the archive rules (GRASP-05) or of the lists means for a repository that is here as a mirror, or is
// leaving: read and judged again as if its announcement came now. Decides only; the caller writes.

import type { CatalogueRow } from "../catalogue/repositories.js";
import { waitingAnnouncement, waitingEvent } from "../catalogue/waiting.js";
import { kinds, type VerifiedEvent } from "../nostr/event.js";
import { announcementOf } from "../nostr/nip34.js";
import type { Reader } from "../store/port.js";
import { reviewAnnouncement } from "./announcement.js";
import { readAnnouncementFacts } from "./announcement-facts.js";
import type { AdmissionSettings } from "./settings.js";
import type { AdmissionContext, Verdict } from "./verdict.js";

/** Others are here for reasons of their own. */
export const isUnderReview = (row: CatalogueRow): boolean =>
  row.status === "leaving" || (row.archive !== null && row.status !== "deleted");

export interface Review {
  readonly event: VerifiedEvent;
  readonly verdict: Verdict & { readonly ok: true };
}

/** Undefined when nothing changes. */
export async function reviewArchived(
  reader: Reader,
  row: CatalogueRow,
  settings: AdmissionSettings,
  nowSeconds: number,
): Promise<Review | undefined> {
  const event = await announcementHere(reader, row);
  const announcement = event && announcementOf(event);
  if (!announcement) return undefined;
  const context: AdmissionContext = { reader, source: { type: "own" }, nowSeconds };
  const facts = await readAnnouncementFacts(event, announcement, context, settings);
  const { services } = settings;
  const verdict = reviewAnnouncement({
    event,
    facts,
    source: context.source,
    nowSeconds,
    config: settings.config(),
    services,
  });
  return verdict.ok && (verdict.changes?.length ?? 0) > 0 ? { event, verdict } : undefined;
}

async function announcementHere(reader: Reader, row: CatalogueRow): Promise<VerifiedEvent | undefined> {
  if (row.status === "waiting" || row.status === "soft") {
    const entry = await waitingAnnouncement(reader, row);
    return entry && waitingEvent(entry);
  }
  const stored = await reader.latest({ kind: kinds.announcement, pubkey: row.owner, identifier: row.identifier });
  return stored?.event;
}
