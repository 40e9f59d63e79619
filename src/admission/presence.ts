// Does this author have anything here? For profiles, grasp lists, deletions and vanish requests.

import { waitingHints, waitingKeys } from "../catalogue/waiting.js";
import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import type { Reader } from "../store/port.js";

/** Kinds that come with an author rather than being about a repository; at most one of each is stored. */
const companions = new Set<number>([kinds.profile, kinds.contacts, kinds.relayList, kinds.graspList]);

export interface Presence {
  readonly anything: boolean;
  /** Something other than companions. */
  readonly substance: boolean;
  readonly waiting: boolean;
}

export async function presenceOf(reader: Reader, pubkey: Pubkey): Promise<Presence> {
  let anything = false;
  let substance = false;
  // One more than there are companions: the last one must be something else.
  const limit = companions.size + 1;
  for await (const page of reader.query([{ authors: [pubkey], limit }], { limit })) {
    anything ||= page.length > 0;
    substance ||= page.some((row) => !companions.has(row.event.kind));
  }
  const waiting = (await waitingHints(reader, waitingKeys.author(pubkey), 1)).length > 0;
  return { anything, substance, waiting };
}
