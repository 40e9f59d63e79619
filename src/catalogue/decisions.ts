// Table "decisions": which rule accepted, held or refused an event, for `holdfast why`. Only the operator sees it.
//   p:<number, 12 digits> → DecisionRecord[], in the order they were made
//   totals                → how many records there are, and the number of the next page
// There is no index: every event pays for writing, and a question is rare, so it reads the pages from the newest on.
// Records are collected (`DecisionLog`) and written many at a time. Retention: at most `maxDecisions`; each page
// written removes at most the two oldest beyond that. Events refused before their signature is checked
// leave no record.
//
// Table "remembered": what was here or was refused, kept as little more than a name, until a second named in the row.
// Keys: `id:<event id>` (an event that expired in purgatory or was refused by policy; see event-sync.md) and
// `left:<owner>:<identifier>` (a waiting repository whose owner withdrew it: older announcements must not bring it
// back when somebody replays them). Rows past `until` mean nothing; whoever sweeps purgatory removes them.

import { setImmediate } from "node:timers/promises";
import { type Clock, commitSoon, LateWork } from "../base/clock.js";
import type { EventId, Pubkey } from "../nostr/event.js";
import type { RefusalCode } from "../nostr/refusals.js";
import type { Store, TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryAddress, repositoryKey } from "./repositories.js";
import type { EntrySource, WaitingEntry } from "./waiting.js";

/** What the rule looked at, small and flat. */
export type Facts = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export interface DecisionRecord {
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly kind: number;
  readonly at: number;
  readonly source: EntrySource["type"];
  /** For events from sync. */
  readonly relay: string | null;
  readonly outcome: "store" | "hold" | "leave" | "lapse" | "known" | "relay" | "refuse";
  readonly rule: string;
  readonly code: RefusalCode | null;
  readonly message: string;
  readonly facts: Facts;
  readonly repositories: readonly string[];
}

const maxDecisions = 100_000;
/** Of one event, the hold and the release say it all. */
const maxRecordsShown = 10;
const pagePrefix = "p:";
const pagesATurn = 16;

interface Totals {
  readonly records: number;
  readonly nextPage: number;
}

const totals = async (reader: TableReader): Promise<Totals> =>
  (await reader.row<Totals>("decisions", "totals")) ?? { records: 0, nextPage: 0 };

/** What was held is served now. */
export const releaseRecord = (entry: WaitingEntry, at: number, message: string): DecisionRecord => ({
  id: entry.id,
  pubkey: entry.pubkey,
  kind: entry.eventKind,
  at,
  source: entry.source.type,
  relay: entry.source.type === "sync" ? entry.source.relay : null,
  outcome: "store",
  rule: entry.kind,
  code: null,
  message,
  facts: {},
  repositories: entry.repositories,
});

/** One page. A page is small, so that reading some of them at a time stays cheap: the caller cuts. */
export async function putDecisions(
  tx: Transaction,
  records: readonly DecisionRecord[],
  max = maxDecisions,
): Promise<void> {
  const { records: before, nextPage } = await totals(tx);
  let count = before + records.length;
  tx.setRow("decisions", `${pagePrefix}${String(nextPage).padStart(12, "0")}`, records);
  if (count > max) {
    const oldest: (readonly [string, readonly DecisionRecord[]])[] = [];
    for await (const page of tx.rows<DecisionRecord[]>("decisions", { prefix: pagePrefix, limit: 2 }))
      oldest.push(page);
    for (const [key, page] of oldest) {
      if (count <= max) break;
      tx.deleteRow("decisions", key);
      count -= page.length;
    }
  }
  tx.setRow("decisions", "totals", { records: count, nextPage: nextPage + 1 } satisfies Totals);
}

export const recordCount = async (reader: TableReader): Promise<number> => (await totals(reader)).records;

/** Newest first. */
async function search(
  reader: TableReader,
  isWanted: (record: DecisionRecord) => boolean,
  limit: number,
): Promise<DecisionRecord[]> {
  const found: DecisionRecord[] = [];
  let pages = 0;
  for await (const [, page] of reader.rows<DecisionRecord[]>("decisions", { prefix: pagePrefix, reverse: true })) {
    for (const record of page.reverse()) {
      if (found.length === limit) return found;
      if (isWanted(record)) found.push(record);
    }
    if (++pages % pagesATurn === 0) await setImmediate();
  }
  return found;
}

/** What was decided about an event, newest first. */
export const decisionsOn = (reader: TableReader, id: EventId): Promise<DecisionRecord[]> =>
  search(reader, (record) => record.id === id, maxRecordsShown);

/** Refusals, newest first. */
export const refusedLately = (reader: TableReader, limit: number): Promise<DecisionRecord[]> =>
  search(reader, ({ outcome }) => outcome === "refuse", limit);

/** The latest decision on each of a repository's events, newest first. */
export function decisionsAbout(reader: TableReader, name: RepositoryName, limit: number): Promise<DecisionRecord[]> {
  const address = repositoryAddress(name);
  const seen = new Set<EventId>();
  const isWanted = ({ id, repositories }: DecisionRecord): boolean =>
    repositories.includes(address) && !seen.has(id) && seen.add(id) !== undefined;
  return search(reader, isWanted, limit);
}

const pageRecords = 64;
const writeAfterMs = 1_000;
/** Only while the store cannot write: then the newest are not noted. */
const maxWaitingRecords = 10_000;

interface DecisionLogParts {
  readonly store: Pick<Store, "transact">;
  readonly clock: Clock;
  /** They stay noted and are tried again. */
  readonly failed: (error: unknown) => void;
}

/**
 * Collects decision records and writes many in one transaction, so that an event does not pay for its own. They are for
 * the operator to read, nothing was promised with them: a crash may lose the newest second of them.
 */
export class DecisionLog {
  #noted: DecisionRecord[] = [];
  /** Somebody waits until they are written. */
  #isAwaited = false;
  readonly #writing: LateWork;

  constructor(private readonly parts: DecisionLogParts) {
    this.#writing = new LateWork(parts.clock, writeAfterMs, () => this.#write());
  }

  note(record: DecisionRecord): void {
    if (this.#noted.length >= maxWaitingRecords) return;
    this.#noted.push(record);
    if (this.#noted.length === pageRecords) void this.#writing.now();
    else this.#writing.later();
  }

  /** Resolves when everything noted so far was written, or could not be. */
  async written(): Promise<void> {
    this.#isAwaited = true;
    const stop = commitSoon(this.parts.store, this.parts.clock);
    try {
      await this.#writing.now();
    } finally {
      stop();
      this.#isAwaited = false;
    }
  }

  async #write(): Promise<void> {
    const page = this.#noted.splice(0, pageRecords);
    if (page.length === 0) return;
    try {
      await this.parts.store.transact((tx) => putDecisions(tx, page), { mayWait: !this.#isAwaited });
    } catch (error) {
      this.#noted.unshift(...page);
      this.parts.failed(error);
      return;
    }
    await this.#write();
  }
}

export interface RememberedId {
  readonly pubkey: Pubkey;
  readonly kind: number;
  /** `expired`: waited in vain. Anything else is the code of a refusal. */
  readonly reason: string;
  readonly relay: string | null;
  readonly until: number;
}

export interface LeftRepository {
  readonly created_at: number;
  readonly id: EventId;
  readonly until: number;
}

const rememberedKey = (id: EventId): string => `id:${id}`;
const leftKey = (name: RepositoryName): string => `left:${repositoryKey(name)}`;

async function remembered<T extends { readonly until: number }>(
  reader: TableReader,
  key: string,
  nowSeconds: number,
): Promise<T | undefined> {
  const row = await reader.row<T>("remembered", key);
  return row !== undefined && row.until > nowSeconds ? row : undefined;
}

export const rememberedId = (reader: TableReader, id: EventId, nowSeconds: number): Promise<RememberedId | undefined> =>
  remembered(reader, rememberedKey(id), nowSeconds);

export const rememberId = (tx: Transaction, id: EventId, row: RememberedId): void =>
  tx.setRow("remembered", rememberedKey(id), row);

export const forgetId = (tx: Transaction, id: EventId): void => tx.deleteRow("remembered", rememberedKey(id));

export const leftRepository = (
  reader: TableReader,
  name: RepositoryName,
  nowSeconds: number,
): Promise<LeftRepository | undefined> => remembered(reader, leftKey(name), nowSeconds);

export const rememberLeft = (tx: Transaction, name: RepositoryName, row: LeftRepository): void =>
  tx.setRow("remembered", leftKey(name), row);

export const forgetLeft = (tx: Transaction, name: RepositoryName): void => tx.deleteRow("remembered", leftKey(name));
