// `relays list|reconnect|ignore|unignore`: the relays sync follows, and those the operator has left alone; and `sync`,
// one comparison with one relay through the server's own door for events, whether a server runs or not. Ignoring is
// kept in the store (bans: relay:<key>) and in force at once; it says nothing about what the relay's users publish here.

import { isPrivateData } from "../access/private-data.js";
import { unixSeconds } from "../base/clock.js";
import type { RepositoryName } from "../catalogue/repositories.js";
import { waitingEntry } from "../catalogue/waiting.js";
import type { Intake } from "../intake/intake.js";
import type { Reach } from "../net/address.js";
import { RelayDialer } from "../net/relay-dialer.js";
import type { RelayUrl } from "../net/url.js";
import type { EventId, NostrEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { announcementOf } from "../nostr/nip34.js";
import type { Refusal } from "../nostr/refusals.js";
import { OneOffFailure } from "../sync/conversation.js";
import { type OneOffSide, type OneOffTally, syncOnce } from "../sync/one-off.js";
import { ownSide } from "../sync/own-server.js";
import type { SortedIds } from "../sync/reconciliation.js";
import type { RelayStatus } from "../sync/status.js";
import {
  type AdminParts,
  type Caller,
  done,
  keyUnusable,
  noteChange,
  type OperationContext,
  type Outcome,
  refusal,
} from "./context.js";
import { filtersNamed } from "./events.js";
import { relayKeyNamed, relayNamed } from "./naming.js";
import { operations } from "./operations.js";
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
  const relay = relayKeyNamed(text);
  if (!relay) return unreadable(text);
  if (!running) return refusal("not-possible", operations["relays.reconnect"].needsServer);
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
  const relay = relayKeyNamed(text);
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
  const relay = relayKeyNamed(text);
  if (!relay) return unreadable(text);
  if (!rules.ignoredRelays.has(relay)) return refusal("unknown", `${relay} is not ignored`);
  await store.transact(async (tx) => {
    tx.deleteRow("bans", `${relayPrefix}${relay}`);
    await noteChange(tx, clock, caller, { what: "unignore relay", target: relay });
  });
  await rules.refresh();
  return done({ relay });
}

/** `sync <relay>` is one of these; `mirror` asks several relays for what it is to mirror. */
interface RelaySync {
  readonly relay: RelayUrl;
  readonly filters: readonly Filter[];
  readonly direction: "up" | "down" | "both";
  /** A mirror is set up: what was refused before is welcome now, and a relay without negentropy will do. */
  readonly forMirror?: boolean;
  /** How far it may be dialled: what the operator named may be anywhere. */
  readonly reach: Reach;
  /** Told of each announcement that was refused. */
  readonly refused?: (name: RepositoryName, refusal: Refusal) => void;
}

export type SyncedRelay = OneOffTally & { readonly relay: string };

export async function syncWithRelay(
  parts: AdminParts,
  request: RelaySync,
  { progress, signal }: OperationContext,
): Promise<Outcome<SyncedRelay>> {
  const intake = await parts.intake();
  if (!intake) return keyUnusable;
  const dialer = await dialerOf(parts, request.reach);
  if (!dialer.ok) return dialer;
  try {
    const tally = await syncOnce({
      url: request.relay,
      filters: request.filters,
      direction: request.direction,
      orRead: request.forMirror ?? false,
      own: sideOf(parts, intake, request),
      progress: (phase, count, total) => progress(count, total, phase === "down" ? "fetching" : "sending"),
      signal,
      dialer: dialer.result,
    });
    return done({ relay: request.relay, ...tally });
  } catch (error) {
    if (error instanceof OneOffFailure) return refusal("not-possible", error.message);
    throw error;
  }
}

/**
 * A private server speaks only to relays that let its key in; a public one says who it is where it is asked. The data knows
 * whether it is private where the settings of a command do not: NGIT_PRIVATE_MODE may stand in the server's unit alone.
 */
export async function dialerOf(parts: AdminParts, reach: Reach): Promise<Outcome<RelayDialer>> {
  const { clock, config, serverSecret, store } = parts;
  const { privateMode } = config();
  if (!privateMode && (await isPrivateData(store))) return privateModeMissing;
  const key = serverSecret();
  if (privateMode && !key) return keyUnusable;
  return done(new RelayDialer(clock, config, () => reach, "holdfast", privateMode ? key : undefined, key));
}

const privateModeMissing = refusal(
  "not-possible",
  "this data belongs to a private service, and NGIT_PRIVATE_MODE is not true here: set NGIT_PRIVATE_MODE=true for this command too, then it speaks only to servers that let this server's key in",
);

function sideOf(parts: AdminParts, intake: Intake, { relay, refused, forMirror }: RelaySync): OneOffSide {
  const { store, clock, config } = parts;
  const own = ownSide(store, clock, () => config().negentropyMaxRecords);
  return {
    records: own.records,
    sort: forMirror ? (ids) => forgivingly(parts, ids) : own.sort,
    async events(ids) {
      const found: { id: (typeof ids)[number]; text: string }[] = [];
      for (const id of ids) {
        const stored = await store.event(id);
        if (stored) found.push({ id, text: stored.event.raw });
      }
      return found;
    },
    async take(event: NostrEvent) {
      const answer = await intake.submit(event, { type: "sync", relay, phase: "direct" });
      if (answer.ok) return answer.outcome === "stored" || answer.outcome === "held" ? "stored" : "known";
      const announcement = announcementOf(event);
      if (announcement) refused?.({ owner: announcement.owner, identifier: announcement.identifier }, answer);
      return answer.code;
    },
  };
}

/** What was refused before is missing, not remembered. */
async function forgivingly({ store }: AdminParts, ids: readonly EventId[]): Promise<SortedIds> {
  const missing: EventId[] = [];
  for (const id of ids) {
    if (!(await store.has(id)) && !(await waitingEntry(store, id))) missing.push(id);
  }
  return { missing, waiting: [] };
}

export async function syncNamedRelay(
  parts: AdminParts,
  asked: { readonly relay: string; readonly direction: RelaySync["direction"]; readonly filters: readonly unknown[] },
  context: OperationContext,
): Promise<Outcome<SyncedRelay>> {
  const relay = relayNamed(asked.relay);
  if (!relay) {
    return refusal("bad-request", `${JSON.stringify(asked.relay)} is no relay: write wss://host[:port][/path]`);
  }
  const filters = filtersNamed(asked.filters);
  if (!filters.ok) return filters;
  const request: RelaySync = { relay, direction: asked.direction, filters: filters.result, reach: "private" };
  return syncWithRelay(parts, request, context);
}
