// What `/status` asks of the rooms that know. Public data only (threats row 31): no held event, no answer or error of
// a remote server, nothing that names what waits.

export interface RelayStatus {
  readonly url: string;
  readonly health: "healthy" | "degraded" | "dead" | "rate-limited";
  readonly isConnected: boolean;
  /** Unix seconds of the last event it brought, if any. */
  readonly lastEvent: number | null;
  /** New events that only a catch-up found. */
  readonly gapEvents: number;
}

export interface StatusSources {
  /** Without relays that only waiting announcements name: who is followed for them would tell of them. */
  syncStatus(): readonly RelayStatus[];
  /** Jobs that look for git data; undefined when nothing hunts. */
  huntingQueue(): number | undefined;
}

export const nothingFollowed: StatusSources = {
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
