// Table "purgatory": what waits for git data, and how it is found; in table "journal", which of it was pushed in part. Time and release are the purgatory room's
// (purgatory.md, "Waiting room"). Every derived row is written here, so that no caller can forget one.
//
//   e:<event id>                                  → WaitingEntry: the truth; every row below is derived from it
//   a:<pubkey>:<kind>:<identifier>:<event id>     → WaitingHint: all of an author's, or one address's
//   r:<repository>:<entry kind>:<event id>        → WaitingHint: what concerns a repository, or may lie in it under /prs/
//   t:<event id or kind:pubkey:identifier>:<id>   → 1: which entries tag an event or address (first 100 targets)
//   x:<phase>:<expires, 12 digits>:<event id>     → 1: what is due, in order
//   h:<bytes, 12 digits>:<pubkey>, b:<pubkey>     → 1, number: who holds how much, the largest holder last
//   g:<event id>:<repository>                     → PlaceholderRow: data pushed to refs/nostr/<id> before its event
//   c:all                                         → WaitingTotals
//   partial:<repository>:<event id>               → PartialPush, in "journal": a state that waits and was pushed in part
//   unfinished:<repository>                       → its name, in "journal": a release that could not be ended
// Repositories and identifiers in keys are encoded (repositories.ts), so no key is a prefix of another's.

import {
  type Address,
  addressOf,
  type EventId,
  eventFromStoredText,
  expirationOf,
  kinds,
  type NostrEvent,
  type Pubkey,
  targetsOf,
  type VerifiedEvent,
} from "../nostr/event.js";
import { isOid, type Oid, pullRequestOf } from "../nostr/nip34.js";
import type { Reader, TableReader, Transaction } from "../store/port.js";
import {
  addressKey,
  identifierKey,
  type RepositoryName,
  repositoryKey,
  repositoryNamed,
  underPrs,
} from "./repositories.js";

export type EntryKind = "announcement" | "state" | "pull-request" | "related";
export type WaitingPhase = "waiting" | "soft";

export type EntrySource =
  | { readonly type: "client" }
  | { readonly type: "sync"; readonly relay: string }
  | { readonly type: "import" }
  | { readonly type: "own" };

export interface WaitingEntry {
  readonly kind: EntryKind;
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly eventKind: number;
  /** The `d` tag of addressable events, else empty. */
  readonly identifier: string;
  readonly created_at: number;
  /** The event's JSON, as it will be served. */
  readonly raw: string;
  readonly bytes: number;
  readonly source: EntrySource;
  readonly entered: number;
  /** When this coordinate began to wait, replacements included. */
  readonly firstWaited: number;
  /** When `expires` was last set anew; absent until then. */
  readonly renewed?: number;
  readonly expires: number;
  readonly phase: WaitingPhase;
  /** Addresses (`30617:owner:identifier`) of the repositories it concerns. */
  readonly repositories: readonly string[];
  /** Pull requests: also looked for in the signer's `/prs/<npub>/<identifier>.git` (GRASP-06). */
  readonly prsIdentifier: string | null;
  /** False: its object ids are ill-formed, it can only expire (threats.md row 1). */
  readonly releasable: boolean;
}

export interface WaitingHint {
  readonly kind: EntryKind;
  readonly phase: WaitingPhase;
  readonly created_at: number;
  readonly bytes: number;
  /** What a pull request waits for; null: nothing that could come. Rows of earlier versions lack it. */
  readonly tip?: Oid | null;
}

export interface WaitingTotals {
  readonly entries: number;
  readonly bytes: number;
  readonly waitingAnnouncements: number;
  readonly softAnnouncements: number;
}

export interface PlaceholderRow {
  readonly id: EventId;
  /** As `repositoryAddress` writes it; under `/prs/` the owner is the signer the path names. */
  readonly repository: string;
  /** What was pushed last. Rows of earlier versions lack it. */
  readonly tip?: Oid;
  readonly ip: string;
  readonly bytes: number;
  readonly entered: number;
  readonly expires: number;
}

const padded = (value: number): string => String(Math.max(0, Math.floor(value))).padStart(12, "0");

export const waitingKeys = {
  entry: (id: EventId): string => `e:${id}`,
  author: (pubkey: Pubkey): string => `a:${pubkey}:`,
  authorKind: (pubkey: Pubkey, kind: number): string => `a:${pubkey}:${kind}:`,
  address: (address: Address): string => `a:${address.pubkey}:${address.kind}:${identifierKey(address.identifier)}:`,
  repository: (name: RepositoryName): string => `r:${repositoryKey(name)}:`,
  repositoryKind: (name: RepositoryName, kind: EntryKind): string => `r:${repositoryKey(name)}:${kind}:`,
  tagsEvent: (id: EventId): string => `t:${id}:`,
  tagsAddress: (address: Address): string => `t:${addressKey(address)}:`,
  dueInPhase: (phase: WaitingPhase): string => `x:${phase}:`,
  due: (phase: WaitingPhase, expires: number): string => `x:${phase}:${padded(expires)}:`,
  holder: (bytes: number, pubkey: Pubkey): string => `h:${padded(bytes)}:${pubkey}`,
  held: (pubkey: Pubkey): string => `b:${pubkey}`,
  placeholdersOf: (id: EventId): string => `g:${id}:`,
  placeholder: (id: EventId, name: RepositoryName): string => `g:${id}:${repositoryKey(name)}`,
  totals: "c:all",
} as const;

export const emptyTotals: WaitingTotals = { entries: 0, bytes: 0, waitingAnnouncements: 0, softAnnouncements: 0 };

/** The `/prs/` repository a waiting pull request may lie in (GRASP-06). */
export const contributorOf = ({ pubkey, prsIdentifier }: WaitingEntry): RepositoryName | undefined =>
  prsIdentifier === null ? undefined : underPrs({ owner: pubkey, identifier: prsIdentifier });

/** Everywhere the data of a waiting entry may lie. */
export function placesOf(entry: WaitingEntry): RepositoryName[] {
  const contributor = contributorOf(entry);
  const named = entry.repositories.flatMap((address) => repositoryNamed(address) ?? []);
  return contributor ? [...named, contributor] : named;
}

/** The event id every index key ends with. */
const idAtEnd = (key: string): EventId => key.slice(-64) as EventId;

export const waitingEntry = (reader: TableReader, id: EventId): Promise<WaitingEntry | undefined> =>
  reader.row<WaitingEntry>("purgatory", waitingKeys.entry(id));

/** Waiting or stored. In this order: a release between the two looks must not make the event look gone. */
export const isStillHere = async (reader: Reader, id: EventId): Promise<boolean> =>
  (await waitingEntry(reader, id)) !== undefined || (await reader.has(id));

export const waitingEvent = (entry: WaitingEntry): VerifiedEvent => eventFromStoredText(entry.raw);

/** The tip a waiting pull request names, when it could be an object. */
export function waitingTip(entry: WaitingEntry): Oid | undefined {
  const tip = pullRequestOf(waitingEvent(entry))?.tip;
  return isOid(tip) ? tip : undefined;
}

export const waitingTotals = async (reader: TableReader): Promise<WaitingTotals> =>
  (await reader.row<WaitingTotals>("purgatory", waitingKeys.totals)) ?? emptyTotals;

export const bytesHeldBy = async (reader: TableReader, pubkey: Pubkey): Promise<number> =>
  (await reader.row<number>("purgatory", waitingKeys.held(pubkey))) ?? 0;

/** Ids and hints under an `a:` or `r:` prefix, at most `limit`. */
export async function waitingHints(
  reader: TableReader,
  prefix: string,
  limit: number,
): Promise<(WaitingHint & { readonly id: EventId })[]> {
  const found: (WaitingHint & { readonly id: EventId })[] = [];
  for await (const [key, hint] of reader.rows<WaitingHint>("purgatory", { prefix, limit })) {
    found.push({ ...hint, id: idAtEnd(key) });
  }
  return found;
}

/** The repositories under `/prs/` in which data of a waiting pull request may lie. */
export async function* awaitedUnderPrs(reader: TableReader): AsyncIterable<RepositoryName> {
  let last = "";
  for await (const [key] of reader.rows("purgatory", { prefix: "r:prs:" })) {
    const repository = key.slice(0, -64);
    const entry = repository === last ? undefined : await waitingEntry(reader, idAtEnd(key));
    const name = entry && contributorOf(entry);
    if (name) yield name;
    last = repository;
  }
}

/** Full entries under an index prefix (`a:`, `r:`, `t:`, `x:`), at most `limit`. */
export async function waitingEntries(reader: TableReader, prefix: string, limit: number): Promise<WaitingEntry[]> {
  const ids: EventId[] = [];
  for await (const [key] of reader.rows("purgatory", { prefix, limit })) ids.push(idAtEnd(key));
  const entries: WaitingEntry[] = [];
  for (const id of ids) {
    const entry = await waitingEntry(reader, id);
    if (entry) entries.push(entry);
  }
  return entries;
}

/** The one waiting announcement of an owner for an identifier, waiting or soft. */
export async function waitingAnnouncement(
  reader: TableReader,
  name: RepositoryName,
): Promise<WaitingEntry | undefined> {
  const address = { kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier };
  return (await waitingEntries(reader, waitingKeys.address(address), 1))[0];
}

const maxHintsWalked = 5_000;

/** How many of a key's announcements wait, soft ones left out; `max` when there are more, or too many to look at. */
export async function waitingAnnouncementsOf(reader: TableReader, pubkey: Pubkey, max: number): Promise<number> {
  let waiting = 0;
  let walked = 0;
  const prefix = waitingKeys.authorKind(pubkey, kinds.announcement);
  for await (const [, { phase }] of reader.rows<WaitingHint>("purgatory", { prefix })) {
    if (phase === "waiting") waiting++;
    if (waiting >= max || ++walked >= maxHintsWalked) return max;
  }
  return waiting;
}

const dueReadAtOnce = 500;

/**
 * Entries due in a phase: `expires` at or before now, earliest first. All of them, in pages: some that are due may have to
 * stay, and others lie behind them.
 */
export async function* dueEntries(
  reader: TableReader,
  phase: WaitingPhase,
  nowSeconds: number,
): AsyncIterable<WaitingEntry> {
  const prefix = waitingKeys.dueInPhase(phase);
  const notYet = waitingKeys.due(phase, nowSeconds + 1);
  for (let after: string | undefined; ; ) {
    const due: string[] = [];
    const range = { prefix, limit: dueReadAtOnce, ...(after !== undefined && { after }) };
    for await (const [key] of reader.rows("purgatory", range)) if (key < notYet) due.push(key);
    for (const key of due) {
      const entry = await waitingEntry(reader, idAtEnd(key));
      if (entry) yield entry;
    }
    if (due.length < dueReadAtOnce) return;
    after = due.at(-1);
  }
}

export async function placeholders(reader: TableReader, id: EventId, limit = 100): Promise<PlaceholderRow[]> {
  const found: PlaceholderRow[] = [];
  const range = { prefix: waitingKeys.placeholdersOf(id), limit };
  for await (const [, row] of reader.rows<PlaceholderRow>("purgatory", range)) found.push(row);
  return found;
}

export const identifierOfEvent = (event: NostrEvent): string => addressOf(event)?.identifier ?? "";

// All writes of one transaction must be awaited one after the other: totals are read, changed and written back.

const maxIndexedTargets = 100;

const addressOfEntry = (entry: WaitingEntry) => ({
  kind: entry.eventKind,
  pubkey: entry.pubkey,
  identifier: entry.identifier,
});

/** Keys of the rows that follow from an entry, except totals and holders. */
function derivedKeys(entry: WaitingEntry): { readonly hints: string[]; readonly marks: string[] } {
  const targets = targetsOf(waitingEvent(entry), maxIndexedTargets);
  return {
    hints: [
      `${waitingKeys.address(addressOfEntry(entry))}${entry.id}`,
      ...placesOf(entry).map((name) => `${waitingKeys.repositoryKind(name, entry.kind)}${entry.id}`),
    ],
    marks: [
      ...targets.ids.map((id) => `${waitingKeys.tagsEvent(id)}${entry.id}`),
      ...targets.addresses.map((address) => `t:${addressKey(address)}:${entry.id}`),
      `${waitingKeys.due(entry.phase, entry.expires)}${entry.id}`,
    ],
  };
}

async function account(tx: Transaction, entry: WaitingEntry, sign: 1 | -1): Promise<void> {
  const totals = await waitingTotals(tx);
  const isAnnouncement = entry.kind === "announcement";
  const changed: WaitingTotals = {
    entries: totals.entries + sign,
    bytes: totals.bytes + sign * entry.bytes,
    waitingAnnouncements: totals.waitingAnnouncements + (isAnnouncement && entry.phase === "waiting" ? sign : 0),
    softAnnouncements: totals.softAnnouncements + (isAnnouncement && entry.phase === "soft" ? sign : 0),
  };
  tx.setRow("purgatory", waitingKeys.totals, changed);
  await accountHolder(tx, entry.pubkey, sign * entry.bytes);
}

async function accountHolder(tx: Transaction, pubkey: Pubkey, change: number): Promise<void> {
  const before = await bytesHeldBy(tx, pubkey);
  const after = before + change;
  if (before > 0) tx.deleteRow("purgatory", waitingKeys.holder(before, pubkey));
  if (after > 0) {
    tx.setRow("purgatory", waitingKeys.holder(after, pubkey), 1);
    tx.setRow("purgatory", waitingKeys.held(pubkey), after);
  } else {
    tx.deleteRow("purgatory", waitingKeys.held(pubkey));
  }
}

/** Writes an entry, or a changed version of it (phase, expiry, repositories). */
export async function putWaiting(tx: Transaction, given: WaitingEntry): Promise<void> {
  // Nobody waits longer than his own expiration (NIP-40) lets him be served.
  const expires = Math.min(given.expires, expirationOf(waitingEvent(given)) ?? given.expires);
  const entry = { ...given, expires };
  await removeWaiting(tx, entry.id);
  tx.setRow("purgatory", waitingKeys.entry(entry.id), entry);
  const hint: WaitingHint = {
    kind: entry.kind,
    phase: entry.phase,
    created_at: entry.created_at,
    bytes: entry.bytes,
    ...(entry.kind === "pull-request" && { tip: (entry.releasable && waitingTip(entry)) || null }),
  };
  const { hints, marks } = derivedKeys(entry);
  for (const key of hints) tx.setRow("purgatory", key, hint);
  for (const key of marks) tx.setRow("purgatory", key, 1);
  await account(tx, entry, 1);
}

/** Removes an entry and all that was derived from it; answers what it was. */
export async function removeWaiting(tx: Transaction, id: EventId): Promise<WaitingEntry | undefined> {
  const entry = await waitingEntry(tx, id);
  if (!entry) return undefined;
  tx.deleteRow("purgatory", waitingKeys.entry(id));
  const { hints, marks } = derivedKeys(entry);
  for (const key of [...hints, ...marks]) tx.deleteRow("purgatory", key);
  await account(tx, entry, -1);
  return entry;
}

export function putPlaceholder(tx: Transaction, row: PlaceholderRow): void {
  const name = repositoryNamed(row.repository);
  if (name) tx.setRow("purgatory", waitingKeys.placeholder(row.id, name), row);
}

export function removePlaceholder(tx: Transaction, row: PlaceholderRow): void {
  const name = repositoryNamed(row.repository);
  if (name) tx.deleteRow("purgatory", waitingKeys.placeholder(row.id, name));
}

/** Of either kind. */
export interface JournalRow extends RepositoryName {
  readonly state?: EventId;
}

export interface PartialPush {
  readonly owner: RepositoryName["owner"];
  readonly identifier: string;
  readonly state: EventId;
  readonly since: number;
}

const partialPrefix = "partial:";

const partialKey = (name: RepositoryName, state: EventId): string => `${partialPrefix}${repositoryKey(name)}:${state}`;

/** The clock of a partial state starts with its first push and is not renewed by later ones. True: it starts now. */
export async function startPartial(
  tx: Transaction,
  name: RepositoryName,
  state: EventId,
  now: number,
): Promise<boolean> {
  const key = partialKey(name, state);
  if ((await tx.row("journal", key)) !== undefined) return false;
  const row: PartialPush = { owner: name.owner, identifier: name.identifier, state, since: now };
  tx.setRow("journal", key, row);
  return true;
}

/** For a clock that jumped. */
export const movePartial = (tx: Transaction, push: PartialPush, seconds: number): void =>
  tx.setRow("journal", partialKey(push, push.state), { ...push, since: push.since + seconds });

export const partialPush = (
  reader: TableReader,
  name: RepositoryName,
  state: EventId,
): Promise<PartialPush | undefined> => reader.row<PartialPush>("journal", partialKey(name, state));

export const endPartial = (tx: Transaction, name: RepositoryName, state: EventId): void =>
  tx.deleteRow("journal", partialKey(name, state));

export async function partialPushes(reader: TableReader): Promise<PartialPush[]> {
  const found: PartialPush[] = [];
  for await (const [, row] of reader.rows<PartialPush>("journal", { prefix: partialPrefix })) found.push(row);
  return found;
}

const unfinishedPrefix = "unfinished:";

export const markUnfinished = (tx: Transaction, { owner, identifier, area = "main" }: RepositoryName): void =>
  tx.setRow("journal", `${unfinishedPrefix}${repositoryKey({ owner, identifier, area })}`, { owner, identifier, area });

export const endUnfinished = (tx: Transaction, name: RepositoryName): void =>
  tx.deleteRow("journal", `${unfinishedPrefix}${repositoryKey(name)}`);

/** Releases that a machine could not end; it may never return. */
export async function unfinishedReleases(reader: TableReader): Promise<RepositoryName[]> {
  const found: RepositoryName[] = [];
  for await (const [, row] of reader.rows<RepositoryName>("journal", { prefix: unfinishedPrefix })) found.push(row);
  return found;
}
