// Making verdicts with little writing.

import { type RefusalCode, refuse } from "../nostr/refusals.js";
import type {
  Change,
  Facts,
  HoldVerdict,
  KnownVerdict,
  RefusedVerdict,
  RelayVerdict,
  RepositoryChange,
  RuleName,
  StoreVerdict,
  Withdrawn,
} from "./policy.js";
import { purgatoryMessage } from "./policy.js";
import type { WaitingEntry } from "./waiting.js";

export const refused = (rule: RuleName, code: RefusalCode, message: string, facts: Facts = {}): RefusedVerdict => ({
  ...refuse(code, message),
  rule,
  facts,
});

interface Extras {
  readonly message?: string;
  readonly changes?: readonly Change[];
  readonly repositories?: readonly RepositoryChange[];
}

export function stored(
  rule: RuleName,
  facts: Facts = {},
  extras: Extras & { readonly withdrawn?: readonly Withdrawn[] } = {},
): StoreVerdict {
  return { ok: true, action: "store", rule, facts, changes: [], repositories: [], withdrawn: [], ...extras };
}

/** `changes` come before the entry itself: what gives way, then what comes. */
export function held(
  rule: RuleName,
  entry: WaitingEntry,
  isNew: boolean,
  facts: Facts = {},
  extras: Extras & { readonly after?: readonly Change[] } = {},
): HoldVerdict {
  return {
    ok: true,
    action: "hold",
    rule,
    facts,
    message: extras.message ?? purgatoryMessage,
    entry,
    isNew,
    changes: [...(extras.changes ?? []), { type: "hold", entry }, ...(extras.after ?? [])],
    repositories: extras.repositories ?? [],
  };
}

export const known = (
  rule: RuleName,
  because: KnownVerdict["because"],
  message: string,
  facts: Facts = {},
): KnownVerdict => ({
  ok: true,
  action: "known",
  because,
  rule,
  facts,
  message,
  changes: [],
  repositories: [],
});

export const relayed = (rule: RuleName, facts: Facts = {}): RelayVerdict => ({
  ok: true,
  action: "relay",
  rule,
  facts,
  changes: [],
  repositories: [],
});
