// Making a waiting entry from an event. The source is kept without the client's address: entries live long.

import { type EntryKind, type EntrySource, identifierOfEvent, type WaitingEntry } from "../catalogue/waiting.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { Deadline } from "./deadlines.js";
import type { Source } from "./policy.js";

export function entrySource(source: Source): EntrySource {
  return source.type === "sync" ? { type: "sync", relay: source.relay } : { type: source.type };
}

export interface NewEntry {
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
