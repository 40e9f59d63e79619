// What a nearly full disk refuses: everything from NGIT_DISK_EVENTS_MAX_PERCENT on, except what makes room.

import type { NostrEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { Volume } from "../store/disk-space.js";

/** They make room, and people must be able to take back what they said, however full it is. */
const makesRoom: ReadonlySet<number> = new Set([kinds.deletion, kinds.vanish]);
/** What git follows with directories and packs of its own. */
const growsGit: ReadonlySet<number> = new Set([
  kinds.announcement,
  kinds.state,
  kinds.pullRequest,
  kinds.pullRequestUpdate,
]);

/** Pure: why this event is not taken now, if so. */
export function refusedForDisk(
  { kind }: Pick<NostrEvent, "kind">,
  used: Readonly<Record<Volume, number>>,
  maxPercent: number,
): Refusal | undefined {
  if (makesRoom.has(kind)) return undefined;
  const share = growsGit.has(kind) ? Math.max(used.git, used.relay) : used.relay;
  if (share * 100 < maxPercent) return undefined;
  return refuse("disk-full", "the server's disk is nearly full, only deletions are taken: try again later");
}
