// Settings an operator changes at run time without touching the configuration: the relay's name, description and icon
// (in force in the information document at once), and kinds of events that are not taken.

import type { AdmissionPolicy } from "../admission/verdict.js";
import { unixSeconds } from "../base/clock.js";
import type { BanRow } from "../catalogue/bans-and-lists.js";
import { text, webUrl } from "../config/kinds.js";
import { maxKind } from "../nostr/event.js";
import { refuse } from "../nostr/refusals.js";
import { type Caller, noteChange } from "./audit.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts } from "./parts.js";
import { kindPrefix, type ProfileField, profileKey, type RunTimeRules } from "./rules.js";

const fieldKinds = { relayName: text(100), relayDescription: text(), relayIcon: webUrl() } as const;

/** An empty text brings the configured one back. */
export async function changeProfile(
  parts: AdminParts,
  caller: Caller,
  { field, value }: { readonly field: ProfileField; readonly value: string },
): Promise<Outcome<{ readonly field: ProfileField; readonly value: string }>> {
  const checked = value === "" ? undefined : fieldKinds[field].schema.safeParse(value);
  if (checked && !checked.success) return refusal("bad-request", `it must be ${fieldKinds[field].words}`);
  await parts.store.transact(async (tx) => {
    if (checked) tx.setRow("meta", profileKey(field), checked.data);
    else tx.deleteRow("meta", profileKey(field));
    await noteChange(tx, parts.clock, caller, { what: `change ${field}`, target: value.slice(0, 200) });
  });
  await parts.rules.refresh();
  return done({ field, value: parts.rules.over(parts.config())[field] ?? "" });
}

export async function setKindTaken(
  parts: AdminParts,
  caller: Caller,
  { kind, taken, reason }: { readonly kind: number; readonly taken: boolean; readonly reason: string },
): Promise<Outcome<{ readonly refusedKinds: readonly number[] }>> {
  if (!Number.isInteger(kind) || kind < 0 || kind > maxKind) {
    return refusal("bad-request", `a kind is a whole number from 0 to ${maxKind}`);
  }
  await parts.store.transact(async (tx) => {
    const row: BanRow = { since: unixSeconds(parts.clock), reason };
    if (taken) tx.deleteRow("bans", `${kindPrefix}${kind}`);
    else tx.setRow("bans", `${kindPrefix}${kind}`, row);
    await noteChange(tx, parts.clock, caller, {
      what: taken ? "allow kind" : "disallow kind",
      target: String(kind),
      reason,
    });
  });
  await parts.rules.refresh();
  return done({ refusedKinds: [...parts.rules.refusedKinds].sort((a, b) => a - b) });
}

/** Admission with the operator's refused kinds before it. */
export function refusingKinds(policy: AdmissionPolicy, rules: Pick<RunTimeRules, "refusedKinds">): AdmissionPolicy {
  return async (event, context) =>
    rules.refusedKinds.has(event.kind)
      ? { ...refuse("not-relayed", `events of kind ${event.kind} are not taken here`), rule: "refused-kind" }
      : policy(event, context);
}
