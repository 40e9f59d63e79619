// Is there room for one more waiting event? (purgatory.md, caps; threats.md row 19)
// The bound in bytes is shared fairly: when it is reached, whoever holds most gives way, soft entries first, then the
// largest; a newcomer who would himself hold most is refused. Announcements never give way: each has a repository.

import { bytesHeldBy, waitingHints, waitingKeys, waitingTotals } from "../catalogue/waiting.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import type { Reader } from "../store/port.js";
import type { AdmissionCaps } from "./caps.js";

export type Room = { readonly ok: true; readonly giveWay: readonly EventId[] } | { readonly ok: false };

const maxHoldersAsked = 20;
const maxEntriesAsked = 1_000;

export async function roomFor(reader: Reader, pubkey: Pubkey, bytes: number, caps: AdmissionCaps): Promise<Room> {
  let excess = (await waitingTotals(reader)).bytes + bytes - caps.waitingBytes;
  if (excess <= 0) return { ok: true, giveWay: [] };
  const ownBytes = (await bytesHeldBy(reader, pubkey)) + bytes;
  const giveWay: EventId[] = [];
  for (const holder of await largestHolders(reader)) {
    if (excess <= 0) break;
    if (holder.pubkey === pubkey || holder.bytes <= ownBytes) return { ok: false };
    let theirs = holder.bytes;
    const entries = await waitingHints(reader, waitingKeys.author(holder.pubkey), maxEntriesAsked);
    entries.sort((a, b) => Number(b.phase === "soft") - Number(a.phase === "soft") || b.bytes - a.bytes);
    for (const entry of entries) {
      if (excess <= 0 || theirs <= ownBytes) break;
      if (entry.kind === "announcement") continue;
      giveWay.push(entry.id);
      theirs -= entry.bytes;
      excess -= entry.bytes;
    }
  }
  return excess <= 0 ? { ok: true, giveWay } : { ok: false };
}

async function largestHolders(reader: Reader): Promise<{ readonly pubkey: Pubkey; readonly bytes: number }[]> {
  const holders: { readonly pubkey: Pubkey; readonly bytes: number }[] = [];
  const range = { prefix: "h:", reverse: true, limit: maxHoldersAsked };
  for await (const [key] of reader.rows("purgatory", range)) {
    const [, held, pubkey] = key.split(":");
    holders.push({ pubkey: pubkey as Pubkey, bytes: Number(held) });
  }
  return holders;
}
