// Table "decisions": which rule accepted, held or refused an event, for `holdfast why`. Only the operator sees it.
//   e:<event id>                                    → DecisionRecord (the latest decision on that event)
//   r:<owner>:<identifier>:<at, 12 digits>:<event id> → 1
//   t:<at, 12 digits>:<event id>                    → 1: oldest first, for retention
// Retention: at most `maxDecisions` records; each new one removes the two oldest beyond that, so the table shrinks to
// its bound after the bound was lowered and a write never costs more than a few rows. Events refused at the gate
// before their signature is checked leave no record.

import { addressOf, addressText } from "../nostr/address.js";
import type { VerifiedEvent } from "../nostr/event.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { repositoriesTagged } from "../nostr/nip34.js";
import type { RefusalCode } from "../nostr/refusals.js";
import type { TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryKey, repositoryNamed } from "./names.js";
import type { Facts, Source, Verdict } from "./policy.js";
import { idAtEnd } from "./waiting.js";

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
const countKey = "n:records";

const padded = (seconds: number): string => String(Math.max(0, seconds)).padStart(12, "0");
const recordKey = (id: EventId): string => `e:${id}`;
const timeKey = (at: number, id: EventId): string => `t:${padded(at)}:${id}`;
const repositoryPrefix = (name: RepositoryName): string => `r:${repositoryKey(name)}:`;

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

export async function putDecision(tx: Transaction, record: DecisionRecord, max = maxDecisions): Promise<void> {
  let count = (await tx.row<number>("decisions", countKey)) ?? 0;
  const before = await decisionOn(tx, record.id);
  if (before) {
    removeRows(tx, before);
    count--;
  }
  tx.setRow("decisions", recordKey(record.id), record);
  tx.setRow("decisions", timeKey(record.at, record.id), 1);
  for (const key of indexKeys(record)) tx.setRow("decisions", key, 1);
  count++;
  if (count > max) {
    const oldest: EventId[] = [];
    for await (const [key] of tx.rows("decisions", { prefix: "t:", limit: 2 })) oldest.push(idAtEnd(key));
    for (const id of oldest.slice(0, count - max)) {
      const old = await decisionOn(tx, id);
      if (!old) continue;
      removeRows(tx, old);
      count--;
    }
  }
  tx.setRow("decisions", countKey, count);
}

const indexKeys = (record: DecisionRecord): string[] =>
  record.repositories.flatMap((address) => {
    const name = repositoryNamed(address);
    return name ? [`${repositoryPrefix(name)}${padded(record.at)}:${record.id}`] : [];
  });

function removeRows(tx: Transaction, record: DecisionRecord): void {
  tx.deleteRow("decisions", recordKey(record.id));
  tx.deleteRow("decisions", timeKey(record.at, record.id));
  for (const key of indexKeys(record)) tx.deleteRow("decisions", key);
}

export const decisionOn = (reader: TableReader, id: EventId): Promise<DecisionRecord | undefined> =>
  reader.row<DecisionRecord>("decisions", recordKey(id));

/** Decisions about a repository's events, newest first. */
export async function decisionsAbout(
  reader: TableReader,
  name: RepositoryName,
  limit: number,
): Promise<DecisionRecord[]> {
  const ids: EventId[] = [];
  const range = { prefix: repositoryPrefix(name), reverse: true, limit };
  for await (const [key] of reader.rows("decisions", range)) ids.push(idAtEnd(key));
  const records: DecisionRecord[] = [];
  for (const id of ids) {
    const record = await decisionOn(reader, id);
    if (record) records.push(record);
  }
  return records;
}
