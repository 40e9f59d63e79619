// What the operator says about relays: left alone until he says otherwise, or tried again now whatever their past.

import { disconnect } from "./connection.js";
import type { RelayKey } from "./messages.js";
import type { Step, SyncState } from "./state.js";

export function ignore(state: SyncState, relays: ReadonlySet<RelayKey>, step: Step): void {
  state.ignored = relays;
  for (const relay of state.relays.values()) {
    if (relays.has(relay.key)) disconnect(state, relay, step);
    state.touched.add(relay);
  }
}

/** Forgets why it was left alone; a link that is open is made anew. */
export function reconnect(state: SyncState, key: RelayKey, step: Step): void {
  const relay = state.relays.get(key);
  if (!relay || state.ignored.has(key)) return;
  disconnect(state, relay, step);
  state.health.forgive(key);
  step.out.push({ type: "dropNaughty", relay: key });
  relay.notBeforeMs = step.now.monotonicMs;
  state.touched.add(relay);
}
