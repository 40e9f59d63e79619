// Housekeeping of one repository with everything that belongs to it: git's own work, what is remembered of it (table
// "meta", `housekeeping:<area>:<owner>:<identifier>`), and the owner's account, which shrinks with what was freed.
// The same for the background and for `holdfast repos gc`. When it is due is not decided here.

import { type Clock, unixSeconds } from "../base/clock.js";
import { catalogueRow, identifierKey } from "../catalogue/repositories.js";
import { diskAddress, type RepositoryAddress } from "../git/address.js";
import {
  type HousekeepingKind,
  type HousekeepingRecord,
  newRecord,
  type PackFacts,
  recordAfter,
} from "../git/housekeeping.js";
import type { Repositories } from "../git/repositories.js";
import type { Store, TableReader } from "../store/port.js";
import { recount } from "./quotas.js";

export interface HousekeepingRow extends HousekeepingRecord {
  readonly owner: RepositoryAddress["owner"];
  readonly identifier: string;
  readonly area: RepositoryAddress["area"];
}

export interface HousekeepingParts {
  readonly store: Store;
  readonly repositories: Repositories;
  readonly clock: Clock;
  readonly graceDays: () => number;
}

export interface HousekeepingReport {
  readonly address: RepositoryAddress;
  readonly kind: HousekeepingKind;
  readonly result: "done" | "busy" | "interrupted" | "failed";
  readonly seconds: number;
  readonly before: PackFacts;
  readonly after: PackFacts;
  readonly error?: unknown;
}

const prefix = "housekeeping:";
const rowKey = ({ area, owner, identifier }: RepositoryAddress): string =>
  `${prefix}${area}:${owner}:${identifierKey(identifier)}`;

export const housekeepingRecord = (
  reader: TableReader,
  address: RepositoryAddress,
): Promise<HousekeepingRow | undefined> => reader.row<HousekeepingRow>("meta", rowKey(address));

export async function* housekeepingRows(
  reader: TableReader,
): AsyncIterable<{ readonly address: RepositoryAddress; readonly record: HousekeepingRow }> {
  for await (const [, record] of reader.rows<HousekeepingRow>("meta", { prefix })) {
    yield { address: diskAddress(record, record.area), record };
  }
}

export const forgetHousekeeping = (store: Store, address: RepositoryAddress): Promise<void> =>
  store.transact(async (tx) => tx.deleteRow("meta", rowKey(address)));

export async function keepHouse(
  parts: HousekeepingParts,
  address: RepositoryAddress,
  kind: HousekeepingKind,
  signal?: AbortSignal,
  insists = false,
): Promise<HousekeepingReport> {
  const { repositories, clock } = parts;
  const repository = repositories.open(address);
  const before = await repository.packFacts();
  // Whatever ends it, a kill too: somebody comes back.
  await remember(parts, address, (record) => ({ ...record, isUnfinished: true }));
  const beganMs = clock.monotonicMs();
  const options = { cruft: kind === "cruft", insists, graceDays: parts.graceDays(), ...(signal ? { signal } : {}) };
  const { result, error } = await repository.housekeep(options).then(
    (outcome) => ({ result: outcome, error: undefined }),
    (fault: unknown) => ({ result: "failed" as const, error: fault }),
  );
  const seconds = (clock.monotonicMs() - beganMs) / 1_000;
  const after = await repository.packFacts();
  if (result !== "busy" && (await repositories.exists(address))) {
    await remember(parts, address, (record) => recordAfter(record, kind, result, after, unixSeconds(clock)));
    if (result === "done" && address.area === "main") await account(parts, address);
  }
  return { address, kind, result, seconds, before, after, ...(error === undefined ? {} : { error }) };
}

async function remember(
  { store, clock }: HousekeepingParts,
  address: RepositoryAddress,
  change: (record: HousekeepingRecord) => HousekeepingRecord,
): Promise<void> {
  const { owner, identifier, area } = address;
  await store.transact(async (tx) => {
    const record = (await housekeepingRecord(tx, address)) ?? newRecord(unixSeconds(clock));
    tx.setRow<HousekeepingRow>("meta", rowKey(address), { ...change(record), owner, identifier, area });
  });
}

/** The disk is looked at first; if a push was booked meanwhile, what was seen is old and the next look counts. */
async function account({ store, repositories }: HousekeepingParts, address: RepositoryAddress): Promise<void> {
  const row = await catalogueRow(store, address);
  if (!row) return;
  const repository = repositories.open(address);
  const { bytes } = await repository.packFacts();
  const pullRequestBytes = await repository.bytesOnlyOf("refs/nostr/");
  if (pullRequestBytes === undefined) return;
  await store.transact(async (tx) => {
    const now = await catalogueRow(tx, address);
    const isAsSeen = now && JSON.stringify(now.counters) === JSON.stringify(row.counters);
    if (isAsSeen) await recount(tx, now, { bytes, pullRequestBytes });
  });
}
