// Reads announcements that count for authority: the stored version and the waiting one (grasp.md, "Who may decide").

import type { NostrEvent } from "../nostr/event.js";
import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Reader } from "../store/port.js";
import { waitingAnnouncement, waitingEvent } from "./waiting.js";

export async function countingAnnouncements(
  reader: Reader,
  owner: Pubkey,
  identifier: string,
): Promise<readonly NostrEvent[]> {
  // Waiting ones first: one that is released between the two looks is then seen twice, not missed.
  const waiting = await waitingAnnouncement(reader, { owner, identifier });
  const stored = await reader.latest({ kind: kinds.announcement, pubkey: owner, identifier });
  return [...(stored ? [stored.event] : []), ...(waiting ? [waitingEvent(waiting)] : [])];
}
