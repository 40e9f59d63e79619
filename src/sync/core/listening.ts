// A relay's time-outs run only while we listen (spec "Truth about oneself"): not while we do not read its socket, and not
// while this process stood still. What the relay said meanwhile may be waiting in the socket.

import type { Relay } from "./relay.js";
import type { SyncState } from "./state.js";

/** Notes whether the relay is read. To be called when that has changed. */
export function listen(state: SyncState, relay: Relay, nowMs: number): void {
  const isDeaf = relay.status === "connected" && (relay.readingPaused || state.readingHeld);
  if (isDeaf) relay.deafSinceMs ??= nowMs;
  else if (relay.deafSinceMs !== undefined) {
    forgive(relay, relay.deafSinceMs, nowMs);
    relay.deafSinceMs = undefined;
  }
}

/** Nobody is read, or everybody again. */
export function holdReading(state: SyncState, held: boolean, nowMs: number): void {
  state.readingHeld = held;
  for (const relay of state.relays.values()) {
    listen(state, relay, nowMs);
    state.touched.add(relay);
  }
}

/** A wake-up that comes far too late: we listened to nobody since the step before. */
export function forgiveLateness(state: SyncState, wakeMs: number, nowMs: number): void {
  if (!state.lastStep || nowMs - wakeMs <= state.config.lateWakeMs) return;
  for (const relay of state.relays.values()) forgive(relay, state.lastStep.monotonicMs, nowMs);
}

/** The time from `sinceMs` until now does not count for what the relay owes us. */
function forgive(relay: Relay, sinceMs: number, nowMs: number): void {
  const later = (atMs: number): number => atMs + Math.max(0, nowMs - Math.max(sinceMs, atMs));
  for (const { queries } of relay.jobs) {
    for (const query of queries) {
      query.sentMs = later(query.sentMs);
      query.heardMs = later(query.heardMs);
    }
  }
  for (const chunk of relay.chunks) {
    chunk.openedMs = later(chunk.openedMs);
    if (chunk.awaitsAuth) chunk.retryAtMs += nowMs - sinceMs;
  }
}
