// What `/status` asks of the rooms that know. Public data only (threats row 31): no held event, no answer or error of
// a remote server, nothing that names what waits.

import type { Announcement } from "../nostr/nip34.js";

export interface RelayStatus {
  readonly url: string;
  readonly health: "healthy" | "degraded" | "dead" | "rate-limited";
  readonly isConnected: boolean;
  /** Unix seconds of the last event it brought, if any. */
  readonly lastEvent: number | null;
  /** New events that only a catch-up found. */
  readonly gapEvents: number;
  /** Repositories followed there, those compared clean at least once, and when the one that waits longest was. */
  readonly compared: { readonly repositories: number; readonly clean: number; readonly oldest: number | null };
}

/** A relay or git server of one repository: when it was in step, or asked, last; never what it said. */
export interface PeerStatus {
  readonly url: string;
  readonly type: "relay" | "git server";
  /** Unix seconds; undefined: not yet, or it is in step right now. */
  readonly at: number | undefined;
  /** Unix seconds of the last comparison that found nothing missing here; undefined: none since the start. */
  readonly lastClean: number | undefined;
  /** Events that were here and not there at the last comparison; undefined where nobody counted. */
  readonly theyLack: number | undefined;
  readonly result: "in step" | "ok" | "failed" | "not yet" | "not followed";
}

export interface StatusSources {
  /** Of what its served announcement lists: relays, then git servers, without ourselves. */
  peersOf(announcement: Announcement): readonly PeerStatus[];
  /** Without relays that only waiting announcements name: who is followed for them would tell of them. */
  syncStatus(): readonly RelayStatus[];
  /** Jobs that look for git data; undefined when nothing hunts. */
  huntingQueue(): number | undefined;
}

export const nothingFollowed: StatusSources = {
  peersOf: () => [],
  syncStatus: () => [],
  huntingQueue: () => undefined,
};

export interface StatusFacts {
  readonly relays: readonly RelayStatus[];
  readonly huntingQueue: number | undefined;
  readonly waiting: { readonly announcements: number; readonly soft: number; readonly entries: number };
  readonly repositories: number;
  readonly events: number;
  readonly startedSeconds: number;
  readonly versions: { readonly holdfast: string; readonly git: string; readonly node: string };
}
