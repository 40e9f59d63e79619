// The verdict on one event: a function of the event, where it came from, and facts read from the store.
// A verdict says everything that must happen, as data: intake writes it (`applyVerdict`), asks git for what `repositories`
// says, and answers. Nobody has to think about rules a second time.

import { type DecisionRecord, type Facts, forgetId, forgetLeft, rememberLeft } from "../catalogue/decisions.js";
import { refreshListings } from "../catalogue/maintainers.js";
import {
  type CatalogueRow,
  deleteCatalogueRow,
  type RepositoryName,
  setCatalogueRow,
} from "../catalogue/repositories.js";
import { putWaiting, removeWaiting, type WaitingEntry } from "../catalogue/waiting.js";
import { addressOf, addressText, type EventId, kinds, type Pubkey, type VerifiedEvent } from "../nostr/event.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import { type Refusal, type RefusalCode, refuse } from "../nostr/refusals.js";
import type { PutResult, Reader, RemovalCause, Transaction } from "../store/port.js";

/** Where an event came from. Nothing is trusted because of it; it decides budgets, messages and the hunt's delay. */
export type Source =
  | { readonly type: "client"; readonly ip: string; readonly authenticated: ReadonlySet<Pubkey> }
  | { readonly type: "sync"; readonly relay: string; readonly phase: string }
  | { readonly type: "import" }
  | { readonly type: "own" };

type RuleName =
  | "refused-kind"
  | "ban"
  | "event-blacklist"
  | "auth-event"
  | "protected"
  | "deleted-by-author"
  | "own-key"
  | "announcement"
  | "repository-list"
  | "archive"
  | "maintainer-exception"
  | "un-hosting"
  | "state"
  | "pull-request"
  | "grasp-06"
  | "related"
  | "ephemeral"
  | "profile"
  | "grasp-list"
  | "deletion"
  | "vanish"
  | "waiting-room"
  | "remembered";

/** A row to write after the event itself was put. Order matters and is kept. */
export type Change =
  | { readonly type: "hold"; readonly entry: WaitingEntry }
  | { readonly type: "unhold"; readonly id: EventId; readonly cause: UnholdCause }
  | { readonly type: "catalogue"; readonly row: CatalogueRow }
  /** The repository never had data: its row goes. */
  | { readonly type: "uncatalogue"; readonly name: RepositoryName }
  /** Its announcements changed: the listings index follows. */
  | { readonly type: "listings"; readonly name: RepositoryName }
  /** A stored event goes: an exception that lapsed. */
  | { readonly type: "remove"; readonly id: EventId; readonly cause: RemovalCause }
  /** Older announcements of this repository must not bring it back. */
  | {
      readonly type: "remember-left";
      readonly name: RepositoryName;
      readonly by: VerifiedEvent;
      readonly until: number;
    }
  | { readonly type: "forget-left"; readonly name: RepositoryName };

export type UnholdCause = "replaced" | "withdrawn" | "deletion" | "vanish" | "evicted" | "expired";

/**
 * What git has to do, in the order given. `create`: must be on disk before the OK. `remove`: its directory goes.
 * `leave`: read-only from now. `delete`: 404 from now, data stays for the grace period. `return`: writable again.
 */
export interface RepositoryChange {
  readonly name: RepositoryName;
  readonly to: "create" | "remove" | "leave" | "delete" | "return";
}

export interface StoredReference {
  readonly id: EventId;
  readonly name: RepositoryName;
}

/** A stored event of its author's that a deletion removes and that git or purgatory must hear of. */
export interface Withdrawn {
  readonly id: EventId;
  readonly kind: number;
  readonly author: Pubkey;
  /** Repositories it belongs to: its own for an announcement, those it tags for a pull request. */
  readonly identifier: string;
  readonly repositories: readonly string[];
}

interface Decided {
  /** One of RuleName when admission decided; another policy may have rules of its own. */
  readonly rule: string;
  readonly facts?: Facts;
}

interface Accepted extends Decided {
  readonly ok: true;
  /** Goes to the client when there is something to say. */
  readonly message?: string;
  readonly changes?: readonly Change[];
  readonly repositories?: readonly RepositoryChange[];
  /** Whose maintainer sets an announcement changed or counts in: what may be released there is looked at again. */
  readonly concerned?: readonly RepositoryName[];
}

/** Kept and served. */
interface StoreVerdict extends Accepted {
  readonly action: "store";
  readonly withdrawn?: readonly Withdrawn[];
}

/** Kept, not served, until its git data is here. `changes` contains the entry. */
interface HoldVerdict extends Accepted {
  readonly action: "hold";
  readonly message: string;
  readonly entry: WaitingEntry;
  /** Was in the waiting room before under its coordinate or id. */
  readonly isNew: boolean;
}

/** Stored and served like `store`; the repository it announced is leaving. */
interface LeaveVerdict extends Accepted {
  readonly action: "leave";
  readonly name: RepositoryName;
  readonly withdrawn?: readonly Withdrawn[];
}

/** Not stored: it only ends a wait. */
interface LapseVerdict extends Accepted {
  readonly action: "lapse";
  readonly name: RepositoryName;
  readonly lapsed: EventId;
}

/** Nothing changes: this event, or a newer one, is here or waits already. */
export interface KnownVerdict extends Accepted {
  readonly action: "known";
  /** It waits itself; it is here; or a newer one is here or waits, and it will not become welcome. */
  readonly because: "waiting" | "duplicate" | "superseded";
  readonly message: string;
}

/** Passed on to live subscribers, not kept (ephemeral kinds). */
interface RelayVerdict extends Accepted {
  readonly action: "relay";
}

export type RefusedVerdict = Refusal & Decided;

export type Verdict =
  | StoreVerdict
  | HoldVerdict
  | LeaveVerdict
  | LapseVerdict
  | KnownVerdict
  | RelayVerdict
  | RefusedVerdict;

export interface AdmissionContext {
  readonly reader: Reader;
  readonly source: Source;
  readonly nowSeconds: number;
}

export type AdmissionPolicy = (event: VerifiedEvent, context: AdmissionContext) => Promise<Verdict>;

export const purgatoryMessage = "purgatory: won't be served until git data arrives";

export const refused = (rule: RuleName, code: RefusalCode, message: string, facts: Facts = {}): RefusedVerdict => ({
  ...refuse(code, message),
  rule,
  facts,
});

/** What a verdict may say beyond its rule and facts. */
type Extras = Pick<Accepted, "message" | "changes" | "repositories" | "concerned">;

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
    ...(extras.concerned && { concerned: extras.concerned }),
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

/** Most events are talk about a repository: they are stored, and nothing else follows. */
export const needsNoGit = (event: VerifiedEvent, verdict: Verdict): boolean =>
  verdict.ok &&
  verdict.action === "store" &&
  event.kind !== kinds.announcement &&
  [verdict.changes, verdict.repositories, verdict.withdrawn].every((list) => (list ?? []).length === 0);

const maxRepositoriesRecorded = 5;

function repositoriesOf(event: VerifiedEvent): string[] {
  const address = addressOf(event);
  const own =
    address && (event.kind === kinds.announcement || event.kind === kinds.state)
      ? [addressText({ ...address, kind: kinds.announcement })]
      : [];
  return [...own, ...repositoriesTagged(event).map(addressText)].slice(0, maxRepositoriesRecorded);
}

/** What is recorded of a verdict. */
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

/**
 * Writes a verdict, in the transaction it was made in: the event first, then the rows that follow, in order. What the store
 * did not save changes nothing. The result of putting the event when the verdict stores it; undefined when it does not. `isReview`: the event is known
 * here and was judged again, so that rows follow even if the store has it.
 */
export async function applyVerdict(
  tx: Transaction,
  event: VerifiedEvent,
  verdict: Verdict,
  nowSeconds: number,
  isReview = false,
): Promise<PutResult | undefined> {
  if (!verdict.ok || verdict.action === "known") return undefined;
  if (verdict.action === "relay") {
    tx.pass(event);
    return undefined;
  }
  const stores = verdict.action === "store" || verdict.action === "leave";
  const put = stores ? await tx.put(event) : undefined;
  if (put && !put.stored && !isReview) return put;
  // Somebody sent it again: what was remembered against it is over.
  forgetId(tx, event.id);
  for (const change of verdict.changes ?? []) await applyChange(tx, change, nowSeconds);
  // It may have waited under another verdict before (a related event whose repository was released since).
  if (stores) await removeWaiting(tx, event.id);
  return put;
}

export async function applyChange(tx: Transaction, change: Change, nowSeconds: number): Promise<void> {
  switch (change.type) {
    case "hold":
      return putWaiting(tx, change.entry);
    case "unhold":
      await removeWaiting(tx, change.id);
      return;
    case "catalogue":
      return setCatalogueRow(tx, change.row);
    case "uncatalogue":
      return deleteCatalogueRow(tx, change.name);
    case "listings":
      return refreshListings(tx, change.name, nowSeconds);
    case "remove":
      await tx.remove(change.id, change.cause);
      return;
    case "remember-left": {
      const { created_at, id } = change.by;
      return rememberLeft(tx, change.name, { created_at, id, until: change.until });
    }
    case "forget-left":
      return forgetLeft(tx, change.name);
  }
}
