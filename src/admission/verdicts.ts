// Making verdicts with little writing, and what is recorded of one.

import type { DecisionRecord, Facts } from "../catalogue/decisions.js";
import type { WaitingEntry } from "../catalogue/waiting.js";
import { addressOf, addressText } from "../nostr/address.js";
import type { VerifiedEvent } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import { type RefusalCode, refuse } from "../nostr/refusals.js";
import type {
  Change,
  HoldVerdict,
  KnownVerdict,
  RefusedVerdict,
  RelayVerdict,
  RepositoryChange,
  RuleName,
  Source,
  StoreVerdict,
  Verdict,
  Withdrawn,
} from "./policy.js";
import { purgatoryMessage } from "./policy.js";

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

const maxRepositoriesRecorded = 5;

function repositoriesOf(event: VerifiedEvent): string[] {
  const address = addressOf(event);
  const own =
    address && (event.kind === kinds.announcement || event.kind === kinds.state)
      ? [addressText({ ...address, kind: kinds.announcement })]
      : [];
  return [...own, ...repositoriesTagged(event).map(addressText)].slice(0, maxRepositoriesRecorded);
}

export function decisionRecord(
  event: VerifiedEvent,
  source: Source,
  verdict: Verdict,
  nowSeconds: number,
): DecisionRecord {
  return {
    id: event.id,
    pubkey: event.pubkey,
    kind: event.kind,
    at: nowSeconds,
    source: source.type,
    relay: source.type === "sync" ? source.relay : null,
    outcome: verdict.ok ? verdict.action : "refuse",
    rule: verdict.rule,
    code: verdict.ok ? null : verdict.code,
    message: verdict.ok && verdict.action === "relay" ? "" : (verdict.message ?? ""),
    facts: verdict.facts ?? {},
    repositories: repositoriesOf(event),
  };
}
