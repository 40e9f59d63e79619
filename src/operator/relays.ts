// `relays list|reconnect|ignore|unignore`: the relays sync follows, and those the operator has left alone. Ignoring is
// kept in the store (bans: relay:<key>) and in force at once; it says nothing about what the relay's users publish here.

import { unixSeconds } from "../base/clock.js";
import { normalRelayUrl, servicePart } from "../net/url.js";
import type { RelayStatus } from "../sync/status.js";
import { type Caller, noteChange } from "./audit.js";
import { done, type Outcome, refusal } from "./outcome.js";
import type { AdminParts } from "./parts.js";
import { relayPrefix } from "./rules.js";

export interface IgnoredRelay {
  readonly relay: string;
  readonly since: number;
  readonly reason: string;
}

export interface RelayList {
  /** What is followed, relays left alone among them; empty while no server runs. */
  readonly relays: readonly RelayStatus[];
  readonly ignored: readonly IgnoredRelay[];
}

/** `wss://host/path`, or the key without a scheme as lists show it. */
export function relayNamed(text: string): string | undefined {
  const name = text.trim();
  const url = normalRelayUrl(/^wss?:\/\//i.test(name) ? name : `wss://${name}`);
  return url && servicePart(url);
}

const unreadable = (text: string) => refusal("bad-request", `${JSON.stringify(text)} is not a relay's address`);

export function listRelays({ rules, running }: AdminParts): RelayList {
  const ignored = [...rules.ignoredRelays].map(([relay, { since, reason }]) => ({ relay, since, reason }));
  return { relays: running?.relays.status() ?? [], ignored };
}

export async function reconnectRelay(
  { running, rules, store, clock }: AdminParts,
  caller: Caller,
  text: string,
): Promise<Outcome<{ readonly relay: string }>> {
  const relay = relayNamed(text);
  if (!relay) return unreadable(text);
  if (!running) return refusal("not-possible", "no server runs that could reconnect");
  if (rules.ignoredRelays.has(relay)) return refusal("not-possible", `${relay} is ignored: take that back first`);
  if (!running.relays.reconnect(relay)) return refusal("unknown", `${relay} is not followed`);
  await store.transact((tx) => noteChange(tx, clock, caller, { what: "reconnect relay", target: relay }));
  return done({ relay });
}

export async function ignoreRelay(
  { rules, store, clock }: AdminParts,
  caller: Caller,
  { relay: text, reason }: { readonly relay: string; readonly reason: string },
): Promise<Outcome<{ readonly relay: string }>> {
  const relay = relayNamed(text);
  if (!relay || Buffer.byteLength(relay) > maxKeyBytes) return unreadable(text);
  await store.transact(async (tx) => {
    tx.setRow("bans", `${relayPrefix}${relay}`, { since: unixSeconds(clock), reason });
    await noteChange(tx, clock, caller, { what: "ignore relay", target: relay, reason });
  });
  await rules.refresh();
  return done({ relay });
}

const maxKeyBytes = 900;

export async function unignoreRelay(
  { rules, store, clock }: AdminParts,
  caller: Caller,
  text: string,
): Promise<Outcome<{ readonly relay: string }>> {
  const relay = relayNamed(text);
  if (!relay) return unreadable(text);
  if (!rules.ignoredRelays.has(relay)) return refusal("unknown", `${relay} is not ignored`);
  await store.transact(async (tx) => {
    tx.deleteRow("bans", `${relayPrefix}${relay}`);
    await noteChange(tx, clock, caller, { what: "unignore relay", target: relay });
  });
  await rules.refresh();
  return done({ relay });
}
