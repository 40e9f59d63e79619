// Table "decisions": which rule accepted, held or refused an event, for `holdfast why`. Only the operator sees it.
//   p:<number, 12 digits> → DecisionRecord[], in the order they were made
//   totals                → how many records there are, and the number of the next page
// There is no index: every event pays for writing, and a question is rare, so it reads the pages from the newest on.
// Records are collected (decision-log.ts) and written many at a time. Retention: at most `maxDecisions`; each page
// written removes at most the two oldest beyond that. Events refused at the gate before their signature is checked
// leave no record.

import { setImmediate } from "node:timers/promises";
import { addressOf, addressText } from "../nostr/address.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import type { RefusalCode } from "../nostr/refusals.js";
import type { TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryAddress } from "./names.js";
import type { Facts, Source, Verdict } from "./policy.js";
import type { WaitingEntry } from "./waiting.js";

export interface DecisionRecord {
  readonly id: EventId;
  readonly pubkey: Pubkey;
  readonly kind: number;
  readonly at: number;
  readonly source: Source["type"];
  /** For events from sync. */
  readonly relay: string | null;
  readonly outcome: "store" | "hold" | "leave" | "lapse" | "known" | "relay" | "refuse";
  readonly rule: string;
  readonly code: RefusalCode | null;
  readonly message: string;
  readonly facts: Facts;
  readonly repositories: readonly string[];
}

export const maxDecisions = 100_000;
const maxRepositoriesRecorded = 5;
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

/** The latest decision on each of a repository's events, newest first. */
export function decisionsAbout(reader: TableReader, name: RepositoryName, limit: number): Promise<DecisionRecord[]> {
  const address = repositoryAddress(name);
  const seen = new Set<EventId>();
  const isWanted = ({ id, repositories }: DecisionRecord): boolean =>
    repositories.includes(address) && !seen.has(id) && seen.add(id) !== undefined;
  return search(reader, isWanted, limit);
}
