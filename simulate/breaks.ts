// Deliberate mistakes, each of which some property must catch. They stand between the world and the core, or change a
// number; the product code has no switch for them.

import type { Break } from "./break.js";

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
  "no-back-off": () => ({ config: { baseBackoffMs: 50, maxBackoffMs: 50 } }),
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
  /** Verdicts of intake get lost. */
  "lost-verdicts": () => ({ input: (input) => (input.type === "verdict" ? undefined : input) }),
  /** Twice as many history subscriptions as allowed. */
  "eight-history-subscriptions": () => ({ config: { maxHistorySubscriptions: 8 } }),
  /** Live events are lost and no daily sync makes up for it. */
  "no-daily-no-live": () => ({
    config: { dailyMinMs: 1e12, dailyMaxMs: 1e12 },
    input: (input) => (input.type === "event" && input.subscription.startsWith("l") ? undefined : input),
  }),
};
