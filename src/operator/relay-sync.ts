// One comparison with one relay, for an operator: through the server's own door for events, whether it runs or not.
// `sync <relay>` is this alone; `mirror` asks several relays for what it is to mirror.

import type { RepositoryName } from "../catalogue/repositories.js";
import { waitingEntry } from "../catalogue/waiting.js";
import type { Intake } from "../intake/intake.js";
import type { Reach } from "../net/address.js";
import { systemResolver } from "../net/resolve.js";
import { normalRelayUrl, type RelayUrl } from "../net/url.js";
import type { NostrEvent } from "../nostr/event.js";
import { type Filter, parseFilter } from "../nostr/filter.js";
import type { EventId } from "../nostr/ids.js";
import { announcementOf } from "../nostr/nip34.js";
import { refusalText } from "../nostr/refusals.js";
import { OneOffFailure } from "../sync/conversation.js";
import type { DialParts } from "../sync/dial.js";
import { type OneOffSide, type OneOffTally, syncOnce } from "../sync/one-off.js";
import { ownSide } from "../sync/own-side.js";
import type { SortedIds } from "../sync/reconciliation.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts, Progress } from "./parts.js";

export interface RelaySync {
  readonly relay: RelayUrl;
  readonly filters: readonly Filter[];
  readonly direction: "up" | "down" | "both";
  /** A mirror is set up: what was refused before is welcome now, and a relay without negentropy will do. */
  readonly forMirror?: boolean;
  /** How far it may be dialled: what the operator named himself may be anywhere. */
  readonly reach: Reach;
  /** Told of each announcement that was refused. */
  readonly refused?: (name: RepositoryName, reason: string) => void;
}

export type SyncedRelay = OneOffTally & { readonly relay: string };

export interface Under {
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** `wss://host[:port][/path]`; the scheme may be left out. */
export const relayNamed = (text: string): RelayUrl | undefined =>
  normalRelayUrl(text.includes("://") ? text.trim() : `wss://${text.trim()}`);

export async function syncWithRelay(
  parts: AdminParts,
  request: RelaySync,
  { progress, signal }: Under,
): Promise<Outcome<SyncedRelay>> {
  const intake = await parts.intake();
  if (!intake) {
    return refusal("not-possible", "the server's key or domain cannot be used: see `holdfast config check`");
  }
  try {
    const tally = await syncOnce({
      url: request.relay,
      filters: request.filters,
      direction: request.direction,
      orRead: request.forMirror ?? false,
      own: sideOf(parts, intake, request),
      progress: (phase, count, total) => progress(count, total, phase === "down" ? "fetching" : "sending"),
      signal,
      dial: dialParts(parts, request.reach),
    });
    return done({ relay: request.relay, ...tally });
  } catch (error) {
    if (error instanceof OneOffFailure) return refusal("not-possible", error.message);
    throw error;
  }
}

export const dialParts = ({ clock, config }: AdminParts, reach: Reach): DialParts => ({
  clock,
  resolve: systemResolver(clock),
  reach: () => reach,
  dialTimeoutMs: () => config().syncDialTimeoutSecs * 1_000,
  maxPayloadBytes: () => config().maxMessageBytes,
  userAgent: "holdfast",
});

function sideOf(parts: AdminParts, intake: Intake, { relay, refused, forMirror }: RelaySync): OneOffSide {
  const { store, clock, config } = parts;
  const own = ownSide(store, clock, () => config().negentropyMaxRecords);
  return {
    records: own.records,
    sort: forMirror ? (ids) => forgivingly(parts, ids) : own.sort,
    async events(ids) {
      const found: { id: (typeof ids)[number]; text: string }[] = [];
      for (const id of ids) {
        const stored = await store.event(id);
        if (stored) found.push({ id, text: stored.event.raw });
      }
      return found;
    },
    async take(event: NostrEvent) {
      const answer = await intake.submit(event, { type: "sync", relay, phase: "direct" });
      if (answer.ok) return answer.outcome === "stored" || answer.outcome === "held" ? "stored" : "known";
      const announcement = announcementOf(event);
      if (announcement)
        refused?.({ owner: announcement.owner, identifier: announcement.identifier }, refusalText(answer));
      return answer.code;
    },
  };
}

/** What was refused before is missing, not remembered. */
async function forgivingly({ store }: AdminParts, ids: readonly EventId[]): Promise<SortedIds> {
  const missing: EventId[] = [];
  for (const id of ids) {
    if (!(await store.has(id)) && !(await waitingEntry(store, id))) missing.push(id);
  }
  return { missing, waiting: [] };
}

/** Filters as JSON from outside; none means all events. */
export function filtersNamed(values: readonly unknown[]): Outcome<readonly Filter[]> {
  if (values.length === 0) return done([{}]);
  const filters: Filter[] = [];
  for (const value of values) {
    const parsed = parseFilter(value);
    if (!parsed.ok) return refusal("bad-request", `${JSON.stringify(value)}: ${parsed.message}`);
    filters.push(parsed.filter);
  }
  return done(filters);
}

export async function syncNamedRelay(
  parts: AdminParts,
  asked: { readonly relay: string; readonly direction: RelaySync["direction"]; readonly filters: readonly unknown[] },
  under: Under,
): Promise<Outcome<SyncedRelay>> {
  const relay = relayNamed(asked.relay);
  if (!relay) {
    return refusal("bad-request", `${JSON.stringify(asked.relay)} is no relay: write wss://host[:port][/path]`);
  }
  const filters = filtersNamed(asked.filters);
  if (!filters.ok) return filters;
  const request: RelaySync = { relay, direction: asked.direction, filters: filters.result, reach: "private" };
  return syncWithRelay(parts, request, under);
}
