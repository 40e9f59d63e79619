// Relays that are followed, as they come and go: made when a listing, a bootstrap list or a participant names them, with
// the clocks kept of them; forgotten when nothing needs them. Who may come is decided elsewhere (targets.ts, outbox.ts).

import { isListed, Relay, type SyncState } from "./core-state.js";
import { adopt } from "./standing.js";
import type { ListedRelay } from "./wanted.js";

export function addRelay(state: SyncState, listed: ListedRelay, bootstrap: boolean): Relay {
  const ix = state.freeIx.pop() ?? state.byIx.length;
  const nowMs = state.now.monotonicMs;
  const firstDeletionsMs = nowMs + state.random() * state.config.deletionsMs;
  const relay = new Relay(ix, listed.key, listed.host, bootstrap, nowMs, firstDeletionsMs);
  state.byIx[ix] = relay;
  state.relays.set(listed.key, relay);
  state.byHost.add(listed.host, ix);
  // Dials of a start are spread; a relay that appears later is dialled at once.
  if (!state.started) relay.notBeforeMs += state.random() * state.config.syncStartupJitterMs;
  adopt(state, relay);
  return relay;
}

export function forgetRelay(state: SyncState, relay: Relay): void {
  relay.forgotten = true;
  state.relays.delete(relay.key);
  state.byIx[relay.ix] = undefined;
  state.freeIx.push(relay.ix);
  state.byHost.remove(relay.host, relay.ix);
  state.outbox.unlisted.delete(relay);
}

/** It is asked for no lists and single events any more. */
export function endPassing(relay: Relay): void {
  relay.passesByUntilMs = Number.NEGATIVE_INFINITY;
  relay.listsWanted.clear();
}

/** As listed; wss where it is listed both ways. */
export function noteUrl(relay: Relay, url: ListedRelay["url"]): void {
  if (url.startsWith("wss:")) relay.wssUrl = url;
  else relay.wsUrl = url;
}

/** A relay that no announcement need list: what announcements list has caps of its own. */
export function relayOutside(state: SyncState, listed: ListedRelay): Relay {
  const relay = state.relays.get(listed.key) ?? addRelay(state, listed, false);
  if (isListed(relay)) return relay;
  noteUrl(relay, listed.url);
  state.outbox.unlisted.add(relay);
  return relay;
}

export const hostHasRoom = ({ byHost, config }: SyncState, host: string): boolean =>
  (byHost.get(host)?.size ?? 0) < config.syncMaxRelaysPerHost;
