// Entries of the waiting room: is there room for one more, how long does it wait, and what is kept of an event
// (purgatory.md "Waiting room"; threats.md row 19). Decides only; sweeping and release are purgatory's.

import type { Facts } from "../catalogue/decisions.js";
import {
  bytesHeldBy,
  type EntryKind,
  type EntrySource,
  identifierOfEvent,
  type WaitingEntry,
  type WaitingPhase,
  waitingHints,
  waitingKeys,
  waitingTotals,
} from "../catalogue/waiting.js";
import type { EventId, Pubkey, VerifiedEvent } from "../nostr/event.js";
import type { Reader } from "../store/port.js";
import type { AdmissionConfig } from "./settings.js";
import { type RefusedVerdict, refused, type Source } from "./verdict.js";

export type Room = { readonly ok: true; readonly giveWay: readonly EventId[] } | { readonly ok: false };

const maxHoldersAsked = 20;
const maxEntriesAsked = 1_000;

/**
 * The bound in bytes is shared fairly: when it is reached, whoever holds most gives way, soft entries first, then the
 * largest; a newcomer whose own share would be the largest is refused. Announcements never give way: each has a repository.
 */
export async function roomFor(reader: Reader, pubkey: Pubkey, bytes: number, config: AdmissionConfig): Promise<Room> {
  let excess = (await waitingTotals(reader)).bytes + bytes - config.purgatoryMaxBytes;
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

export const waitingRoomFull = (facts: Facts): RefusedVerdict =>
  refused("waiting-room", "waiting-room-full", "the waiting room is full: try later", facts);

async function largestHolders(reader: Reader): Promise<{ readonly pubkey: Pubkey; readonly bytes: number }[]> {
  const holders: { readonly pubkey: Pubkey; readonly bytes: number }[] = [];
  const range = { prefix: "h:", reverse: true, limit: maxHoldersAsked };
  for await (const [key] of reader.rows("purgatory", range)) {
    const [, held, pubkey] = key.split(":");
    holders.push({ pubkey: pubkey as Pubkey, bytes: Number(held) });
  }
  return holders;
}

interface Deadline {
  readonly phase: WaitingPhase;
  readonly expires: number;
}

type WaitTimes = Pick<AdmissionConfig, "purgatoryExpirySecs" | "purgatoryMaxWaitSecs" | "purgatorySoftExpirySecs">;

/**
 * An announcement that came, was replaced, or whose clock restarts because an authorised state or a push arrived.
 * Endless replacement does not keep it alive: a day after the coordinate began to wait it goes soft.
 */
export function announcementDeadline(firstWaited: number, nowSeconds: number, config: WaitTimes): Deadline {
  const last = firstWaited + config.purgatoryMaxWaitSecs;
  if (last <= nowSeconds) return { phase: "soft", expires: nowSeconds + config.purgatorySoftExpirySecs };
  return { phase: "waiting", expires: Math.min(nowSeconds + config.purgatoryExpirySecs, last) };
}

/** Of everything but announcements. */
export const usualDeadline = (nowSeconds: number, { purgatoryExpirySecs }: WaitTimes): Deadline => ({
  phase: "waiting",
  expires: nowSeconds + purgatoryExpirySecs,
});

/** The same entry with its clock restarted; a soft one is revived for a new day, because somebody asked for it. */
export function restarted(entry: WaitingEntry, nowSeconds: number, config: WaitTimes): WaitingEntry {
  const firstWaited = entry.phase === "soft" ? nowSeconds : entry.firstWaited;
  return { ...entry, firstWaited, renewed: nowSeconds, ...announcementDeadline(firstWaited, nowSeconds, config) };
}

/** Without the client's address: entries live long. */
function entrySource(source: Source): EntrySource {
  return source.type === "sync" ? { type: "sync", relay: source.relay } : { type: source.type };
}

interface NewEntry {
  readonly kind: EntryKind;
  readonly event: VerifiedEvent;
  readonly source: Source;
  readonly nowSeconds: number;
  readonly deadline: Deadline;
  readonly repositories: readonly string[];
  readonly firstWaited?: number;
  readonly prsIdentifier?: string | null;
  readonly releasable?: boolean;
}

export function newEntry(from: NewEntry): WaitingEntry {
  const { event, nowSeconds } = from;
  return {
    kind: from.kind,
    id: event.id,
    pubkey: event.pubkey,
    eventKind: event.kind,
    identifier: identifierOfEvent(event),
    created_at: event.created_at,
    raw: event.raw,
    bytes: Buffer.byteLength(event.raw),
    source: entrySource(from.source),
    entered: nowSeconds,
    firstWaited: from.firstWaited ?? nowSeconds,
    ...from.deadline,
    repositories: from.repositories,
    prsIdentifier: from.prsIdentifier ?? null,
    releasable: from.releasable ?? true,
  };
}
