// Deliberate mistakes, each of which some property must catch. They stand between the world and the core, or change a
// number; the product code has no switch for them.

import type { RelaySnapshot } from "../src/sync/core/standing.js";
import type { Break } from "./break.js";

function asIfNothingWerePromised(relay: RelaySnapshot): RelaySnapshot {
  const isConfirmed = relay.state === "live" && relay.failures === 0 && relay.confirmedItems === relay.items;
  const isAnswered = relay.pendingBatches + relay.historySubscriptions + relay.offersInFlight === 0;
  return { ...relay, inStep: relay.inStep || (isConfirmed && isAnswered) };
}

export const breaks: Readonly<Record<string, () => Break>> = {
  /** CLOSED counts as the end of a history subscription. */
  "confirmed-by-closed": () => ({
    input: (input) =>
      input.type === "subscriptionClosed" && input.subscription.startsWith("h") ? { ...input, type: "eose" } : input,
  }),
  /** Only the first page of a filter is ever read. */
  "one-page-only": () => {
    const silent = new Set<string>();
    return {
      command: (command) => {
        if (command.type !== "subscribe" || !command.subscription.startsWith("h")) return command;
        if (command.filters.some((filter) => filter.until !== undefined)) silent.add(command.subscription);
        return command;
      },
      input: (input) => (input.type === "event" && silent.has(input.subscription) ? undefined : input),
    };
  },
  /** Relays are dialled again at once. */
  "no-back-off": () => ({ config: { syncBaseBackoffSecs: 0.05, syncMaxBackoffSecs: 0.05 } }),
  /** "Slow down" is heard as any other refusal. */
  "deaf-to-rate-limits": () => ({
    input: (input) => {
      if (input.type === "subscriptionClosed")
        return { ...input, message: input.message.replace("rate-limited: slow down", "error: no") };
      if (input.type === "notice") return { ...input, message: input.message.replace("too many requests", "a lot") };
      return input.type === "reconcileFailed" && input.kind === "rate-limited" ? { ...input, kind: "failed" } : input;
    },
  }),
  /** What leaves our server is not noticed. */
  "deaf-to-removals": () => ({
    input: (input) =>
      input.type === "removed" || input.type === "unwaiting" || (input.type === "accepted" && input.hosted === false)
        ? undefined
        : input,
  }),
  /** Property 11: a list whose signature is wrong is believed. */
  "forged-lists-believed": () => ({
    judge: (outcome, { kind }) => (kind === 10002 && outcome.type === "refused" ? { type: "duplicate" } : outcome),
  }),
  /** Property 11: nobody finds out who takes part. */
  "participants-forgotten": () => ({
    command: (command) => (command.type === "lookUpParticipants" ? undefined : command),
  }),
  /** Verdicts of intake get lost. */
  "lost-verdicts": () => ({ input: (input) => (input.type === "verdict" ? undefined : input) }),
  /** Twice as many history subscriptions as allowed. */
  "eight-history-subscriptions": () => ({ config: { syncHistorySubscriptions: 8 } }),
  /** Live events are lost and no daily sync makes up for it. */
  "no-daily-no-live": () => ({
    config: { syncDailyMinHours: 1e6, syncDailyMaxHours: 1e6 },
    input: (input) => (input.type === "event" && input.subscription.startsWith("l") ? undefined : input),
  }),
  /** Property 7: a refusal by one of our rules is taken for trouble of our own, as if the disk were full. */
  "rules-taken-for-trouble": () => ({
    judge: (outcome) =>
      outcome.type === "refused" && outcome.code !== "disk-full" ? { type: "refused", code: "disk-full" } : outcome,
  }),
  /** Property 7: our trouble asks for another full sync every ten seconds. */
  "trouble-without-patience": () => ({ config: { resyncAfterTroubleMs: 10_000, maxResyncWaitMs: 10_000 } }),
  /** Property 7: the daily sync comes every hour. */
  "daily-every-hour": () => ({ config: { syncDailyMinHours: 1, syncDailyMaxHours: 1 } }),
  /** Property 7: no answer is believed, and what failed is asked for again at once. */
  "retries-without-delay": () => ({
    config: { syncRetryBaseSecs: 0.02, syncRetryMaxSecs: 0.02, syncDisableNegentropy: true },
    input: (input) =>
      input.type === "eose" && input.subscription.startsWith("h")
        ? { ...input, type: "subscriptionClosed", message: "error: no" }
        : input,
  }),
  /** Property 7: every refusal of a session is taken for one by size, and halved without end. */
  "halved-without-end": () => ({
    config: { maxSplitsInVain: 1e9, maxSplitsPerQuery: 1e9 },
    input: (input) => (input.type === "reconcileFailed" ? { ...input, kind: "too-many" } : input),
  }),
  /** Property 8: too many values are taken for too many requests. */
  "values-taken-for-requests": () => ({
    input: (input) =>
      input.type === "subscriptionClosed" && input.message.includes("too many values")
        ? { ...input, message: "rate-limited: too many" }
        : input,
  }),
  /** Property 8: "slow down" after NEG-OPEN is taken for a relay without negentropy. */
  "patience-taken-for-failure": () => ({
    input: (input) =>
      input.type === "notice" && input.message.includes("too many requests")
        ? { ...input, message: "ERROR: bad msg: unknown cmd NEG-OPEN" }
        : input,
  }),
  /** Ids that a relay claimed and did not send are given up, and nobody is told: whoever has answered is in step. */
  "promises-forgotten": () => ({
    config: { owedDelaysMs: [] },
    snapshot: (snapshot) => ({ ...snapshot, relays: snapshot.relays.map(asIfNothingWerePromised) }),
  }),
  /** Nobody hears that an author is welcome again. */
  "deaf-to-lists": () => ({ input: (input) => (input.type === "listsChanged" ? undefined : input) }),
  /** A quick reconnect asks for nothing older than the loss. */
  "no-look-back": () => ({ config: { syncQuickLookbackSecs: 0, syncLiveLookbackSecs: 0 } }),
  /** Nobody notices that the process stood still. */
  "standstill-unnoticed": () => ({ config: { stoodStillMs: 1e12, syncStaleAfterSecs: 1e9, syncQuickLookbackSecs: 0 } }),
  /** Whoever has a place keeps it. */
  "places-for-ever": () => ({ config: { maxReplacedAtOnce: 0 } }),
  /** A maintainer's states have no room of their own. */
  "no-room-for-states": () => ({ config: { maxOwnPerAuthorPerDay: 0, dayMs: 1e12 } }),
  /** Items without a live filter are never asked for in turn. */
  "no-rotation": () => ({ config: { syncRotateRootsHours: 1e6, syncRotateReposHours: 1e6 } }),
  /** Property 9: layer 4 is looked up only where a link has lasted for a day. */
  "layer-four-of-old-links": () => {
    const dialledMs = new Map<string, number>();
    return {
      command: (command, { monotonicMs }) => {
        if (command.type === "connect") dialledMs.set(command.relay, monotonicMs);
        const isYoung = (relay: string): boolean => monotonicMs - (dialledMs.get(relay) ?? 0) < 21 * 3_600_000;
        return command.type === "lookUpRelated" && isYoung(command.relay) ? undefined : command;
      },
    };
  },
  /** Property 8: what the disk had no room for counts as stored. */
  "lost-counts-as-stored": () => ({
    judge: (outcome) => (outcome.type === "refused" && outcome.code === "disk-full" ? { type: "duplicate" } : outcome),
  }),
  /** Property 8: a relay that was once out of reach is shown so for ever. */
  "once-dead-always-dead": () => {
    const dead = new Set<string>();
    return {
      command: (command) => {
        if (command.type === "log" && command.code === "link-lost" && command.relay) dead.add(command.relay);
        return command;
      },
      snapshot: (snapshot) => ({
        ...snapshot,
        relays: snapshot.relays.map((relay) =>
          dead.has(relay.relay) ? { ...relay, status: 3 as const, failures: 34 } : relay,
        ),
      }),
    };
  },
  /** Property 8: whoever is connected is in step. */
  "connected-is-in-step": () => ({
    snapshot: (snapshot) => ({
      ...snapshot,
      relays: snapshot.relays.map((relay) => ({ ...relay, inStep: relay.connected })),
    }),
  }),
  /** Property 9: nobody looks up what layer 4 is about. */
  "no-layer-four": () => ({ command: (command) => (command.type === "lookUpRelated" ? undefined : command) }),
  /** Property 10: the core is woken every millisecond. */
  "woken-every-millisecond": () => ({
    command: (command, now) =>
      command.type === "wakeAt"
        ? { ...command, monotonicMs: Math.min(command.monotonicMs, now.monotonicMs + 1) }
        : command,
  }),
};
