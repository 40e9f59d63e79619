// What intake says of an event that was offered: verdicts move budgets, memory and counts, and tell a relay that sends
// rubbish from trouble of our own.

import type { NostrEvent } from "../../nostr/event.js";
import { gitDataKinds, kinds } from "../../nostr/kinds.js";
import { idTag, offer, oneOfferLess, roomToday } from "./arrivals.js";
import type { Account } from "./budgets.js";
import { disconnect, resyncLater } from "./connection.js";
import { rootItem } from "./items.js";
import { reconsider } from "./live-set.js";
import type { EventSource, Input } from "./messages.js";
import { isOurs, isTrouble } from "./refusals.js";
import { judgeAgain } from "./rejudging.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { log, tally } from "./telling.js";

/** What waited for this verdict goes to intake, or is for another day, or for another repository it is about. */
function settleBudget(state: SyncState, account: Account, isNew: boolean, step: Step): void {
  const { budgets, relays } = state;
  const wasOver = budgets.isOver(account);
  const held = budgets.settle(account, isNew);
  if (!budgets.isOver(account)) {
    step.out.push(...held);
    return;
  }
  if (!wasOver)
    log(step, "warn", "coordinate" in account ? "repository-budget-hit" : "author-budget-hit", undefined, account);
  for (const { relay: key, type: _type, account: _account, ...arrival } of held) {
    oneOfferLess(state, relays.get(key), step);
    offer(state, key, arrival, step);
  }
}

/** Layer 1 and the state layer ask for what strangers wrote: that we refuse most of it is not the relay's fault. */
const isExpectedRefusal = (event: NostrEvent): boolean =>
  event.kind === kinds.announcement || event.kind === kinds.state;

export function onVerdict(state: SyncState, input: Extract<Input, { type: "verdict" }>, step: Step): void {
  const { event, outcome, source } = input;
  const { config } = state;
  const relay = state.relays.get(input.relay);
  const isNew = outcome.type === "stored" || outcome.type === "held";
  if (isNew && relay) countNew(state, relay, step);
  oneOfferLess(state, relay, step);
  if (input.account) settleBudget(state, input.account, isNew, step);
  state.remembered.note(event, outcome, input.relay, step.now, step.out);
  if ((outcome.type === "held" || outcome.type === "waiting") && gitDataKinds.has(event.kind)) {
    step.out.push({ type: "servedThere", relay: input.relay, id: event.id });
  }
  if (isNew) {
    tally(step, "events", undefined, source);
    if (source === "live") {
      log(step, "debug", "live-event", relay, { id: event.id, kind: event.kind });
      if (outcome.type === "stored" && input.isCurrent) {
        step.out.push({ type: "observeLag", seconds: Math.max(0, step.now.wallMs / 1000 - event.created_at) });
      }
    }
    if (relay && !input.layerFour) noteHistory(relay, source, step);
    noteNew(state, relay, event, step);
    if (outcome.type === "stored") judgeAgain(state, event, undefined, step);
  }
  if (!relay) return;
  if (isTrouble(outcome)) resyncLater(state, relay, step);
  if (isOurs(outcome)) return;
  relay.judged += 1;
  if (outcome.type === "refused" && !isExpectedRefusal(event)) relay.refused += 1;
  if (relay.judged < config.refusedWindow) return;
  const share = relay.refused / relay.judged;
  relay.judged = 0;
  relay.refused = 0;
  if (share > config.refusedShare) pause(state, relay, "mostly-refused", config.refusedPauseMs, step);
}

/** For the summaries; what live should have brought is also counted as a gap. */
function noteHistory(relay: Relay, source: EventSource, step: Step): void {
  if (source !== "startup" && source !== "reconnect" && source !== "daily") return;
  relay.newSince[source] += 1;
  if (source !== "startup") tally(step, "gap_events", relay);
}

function noteNew(state: SyncState, relay: Relay | undefined, event: NostrEvent, step: Step): void {
  for (const [name, value] of event.tags) {
    const root =
      name !== undefined && value !== undefined && idTag.test(name) ? state.wanted.rootNumber(value) : undefined;
    if (root === undefined) continue;
    state.wanted.noteActivity(root, Math.min(event.created_at, step.now.wallMs / 1000));
    if (relay) reconsider(state, relay, rootItem(root));
  }
}

function countNew(state: SyncState, relay: Relay, step: Step): void {
  const room = roomToday(state, relay, step) - 1;
  relay.newToday += 1;
  relay.lastNewMs = step.now.monotonicMs;
  if (room > 0) return;
  pause(state, relay, "relay-budget-hit", relay.dayStartMs + state.config.dayMs - step.now.monotonicMs, step);
}

function pause(state: SyncState, relay: Relay, code: string, forMs: number, step: Step): void {
  state.health.of(relay.key).pausedUntilMs = step.now.monotonicMs + forMs;
  log(step, "warn", code, relay, { forMs: Math.round(forMs) });
  disconnect(state, relay, step);
  state.touched.add(relay);
}
