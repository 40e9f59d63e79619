// Private kinds (78, 30078): what applications keep for their users. Served to nobody but the author, who has
// authenticated on this connection: in answers, live, counted and reconciled alike, whenever they were stored.

import { isPrivateKind, type Pubkey } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { type Refusal, refuse } from "../nostr/refusals.js";

export type Readers = Pick<ReadonlySet<Pubkey>, "has">;

/** What somebody is told who asks for private events and has not said who it is. `refusal`: for nothing else was asked. */
export function needsAuthentication(
  filters: readonly Filter[],
  isKnown: boolean,
): { readonly needed: boolean; readonly refusal?: Refusal } {
  if (isKnown || !filters.some(({ kinds }) => kinds?.some(isPrivateKind))) return { needed: false };
  const isAll = filters.every(({ kinds }) => kinds?.every(isPrivateKind));
  return { needed: true, ...(isAll && { refusal: unknownReader }) };
}

const unknownReader = refuse(
  "auth-required",
  "events of kinds 78 and 30078 are shown to their authors only: authenticate and ask again",
);
