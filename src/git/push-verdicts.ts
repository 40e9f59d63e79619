// A push's verdicts put together: what they add up to for the pusher, for the refs, and for the pack. Pure.

import type { PushResult } from "./push-hooks.js";
import type {
  CommandVerdict,
  PackBudgets,
  PushAuthority,
  PushCommand,
  PushDecision,
  RefUpdate,
  Refused,
} from "./types.js";

export const refuseAll = (commands: readonly PushCommand[], { code, reason }: Refused): CommandVerdict[] =>
  commands.map((command) => ({ command, ok: false, code, reason }));

export function resultOf(verdicts: readonly CommandVerdict[], extra: Partial<PushResult> = {}): PushResult {
  const failing = verdicts.find((verdict) => !verdict.ok);
  return {
    unpack: "ok",
    code: failing && !failing.ok ? failing.code : "ok",
    verdicts,
    messages: [],
    ...extra,
  };
}

export function updatesOf({ verdicts }: PushDecision): RefUpdate[] {
  return verdicts.flatMap((verdict) =>
    verdict.ok && verdict.effect === "move" ? [{ ref: verdict.command.ref, to: verdict.command.new }] : [],
  );
}

/** The same commands with the same effects, under the same state. */
export function isSamePlan(a: PushDecision, b: PushDecision): boolean {
  const plan = ({ verdicts, candidate }: PushDecision): string =>
    JSON.stringify([candidate?.id, verdicts.map((verdict) => (verdict.ok ? verdict.effect : "refused"))]);
  return plan(a) === plan(b);
}

/** What the pack may have, by the tightest of all limits, and why that one holds. */
export function packBudgetsFor(
  authority: PushAuthority,
  { verdicts }: PushDecision,
  budgets: PackBudgets,
): PackBudgets & { readonly why: string } {
  const onlyPlaceholders = verdicts.every((verdict) => !verdict.ok || verdict.effect !== "move");
  const limits = [{ maxBytes: budgets.maxPackBytes, reason: "" }];
  if (authority.quota) limits.push(authority.quota);
  if (onlyPlaceholders && authority.unclaimed.ok) {
    const reason = "data for an event this server does not know yet: publish the event first";
    limits.push({ maxBytes: authority.unclaimed.maxBytes, reason });
  }
  const tightest = limits.reduce((a, b) => (b.maxBytes < a.maxBytes ? b : a));
  return { ...budgets, maxPackBytes: Math.max(0, tightest.maxBytes), why: tightest.reason };
}
