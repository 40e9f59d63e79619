// How much a relay is asked in a while. What is asked for the first time, and a full sync, comes as fast as the relay
// answers; everything else (retries, catch-up, rotation, layer 4) in turns, so that a relay that refuses at random, or
// breaks after each question, is not stormed. Live requests count and never wait.

import type { Relay } from "./relay.js";
import type { SyncState } from "./state.js";

/** A request goes out. */
export function noteRequest({ config }: SyncState, relay: Relay, nowMs: number): void {
  if (relay.isInFullSync) return;
  if (nowMs >= relay.turnMs + config.requestTurnMs) {
    relay.turnMs = nowMs;
    relay.askedInTurn = 0;
  }
  relay.askedInTurn += 1;
}

/** When the relay may be asked again by this rule; past: now. */
export const nextTurnMs = ({ config }: SyncState, relay: Relay): number =>
  relay.askedInTurn < config.requestsPerTurn ? 0 : relay.turnMs + config.requestTurnMs;
