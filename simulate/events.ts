// Events of the model world. Ids are drawn, not hashed, and a signature is a word: the core never looks at either.

import { servicePart } from "../src/net/url.js";
import type { EventId, NostrEvent, Pubkey } from "../src/nostr/event.js";
import type { Chance } from "./random.js";

export const goodSignature = "good";
export const startWallMs = 1_700_000_000_000;

export interface Draft {
  readonly pubkey: Pubkey;
  readonly kind: number;
  readonly created_at: number;
  readonly tags: readonly (readonly string[])[];
}

export function makeEvent(chance: Chance, draft: Draft, sig = goodSignature): NostrEvent {
  return { ...draft, id: chance.hex(8) as EventId, content: "", sig, raw: `${draft.kind}` };
}

export const newPubkey = (chance: Chance): Pubkey => chance.hex(8) as Pubkey;

export const ownHost = "us.example";

export function announcement(
  chance: Chance,
  owner: Pubkey,
  identifier: string,
  createdAt: number,
  relays: readonly string[],
  listsUs: boolean,
  maintainers: readonly Pubkey[] = [],
): NostrEvent {
  const hosts = listsUs ? [`wss://${ownHost}`, ...relays] : [...relays];
  const tags: string[][] = [
    ["d", identifier],
    ["relays", ...hosts],
    ["clone", `https://${listsUs ? ownHost : "other.example"}/x/${identifier}.git`],
  ];
  if (maintainers.length > 0) tags.push(["maintainers", ...maintainers]);
  return makeEvent(chance, { pubkey: owner, kind: 30617, created_at: createdAt, tags });
}

/** The announcement lists this relay. */
export const lists = (event: NostrEvent, key: string): boolean =>
  event.tags.some((tag) => tag[0] === "relays" && tag.slice(1).some((url) => servicePart(url) === key));
