// Housekeeping in the background: hears which repositories changed, looks at them when they have been quiet for a
// while, and does what is due, one at a time over all of them. What waits is one entry a repository; nothing is
// scanned, except once after a start (what changed before it) and the records of those that must be visited weekly.
// close() stops what runs within moments. What was done is remembered in table "meta",
// `housekeeping:<repository>`.

import { type Clock, unixSeconds } from "../base/clock.js";
import { KeyedLock } from "../base/keyed-lock.js";
import { sharedAbort } from "../base/shared-abort.js";
import { largeFileTotals } from "../catalogue/large-files.js";
import { catalogueRow, catalogueRows, recount } from "../catalogue/repositories.js";
import type { Store, TableReader, Transaction } from "../store/port.js";
import { diskAddress, type RepositoryAddress } from "./address.js";
import {
  garbageDue,
  type HousekeepingConfig,
  type HousekeepingKind,
  type HousekeepingRecord,
  housekeepingDue,
  newRecord,
  type PackFacts,
  recordAfter,
} from "./housekeeping.js";
import type { Repositories } from "./repositories.js";

interface HousekeepingRow extends HousekeepingRecord {
  readonly owner: RepositoryAddress["owner"];
  readonly identifier: string;
  readonly area: RepositoryAddress["area"];
}

interface HousekeepingParts {
  readonly store: Store;
  readonly repositories: Repositories;
  readonly clock: Clock;
  readonly config: () => HousekeepingConfig;
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
const rowKey = (address: RepositoryAddress): string => `${prefix}${address.key}`;

export const housekeepingRecord = (
  reader: TableReader,
  address: RepositoryAddress,
): Promise<HousekeepingRow | undefined> => reader.row<HousekeepingRow>("meta", rowKey(address));

async function* housekeepingRows(
  reader: TableReader,
): AsyncIterable<{ readonly address: RepositoryAddress; readonly record: HousekeepingRow }> {
  for await (const [, record] of reader.rows<HousekeepingRow>("meta", { prefix })) {
    yield { address: diskAddress(record), record };
  }
}

const forgetHousekeeping = (store: Store, address: RepositoryAddress): Promise<void> =>
  store.transact(async (tx) => tx.deleteRow("meta", rowKey(address)), { isLocal: true });

/** One repository with everything that belongs to it: git's own work, the record of it, and the owner's account, which shrinks. */
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
  const options = {
    cruft: kind === "cruft",
    insists,
    graceDays: parts.config().gitCruftGraceDays,
    ...(signal ? { signal } : {}),
  };
  const { result, error } = await repository.housekeep(options).then(
    (outcome) => ({ result: outcome, error: undefined }),
    (fault: unknown) => ({ result: "failed" as const, error: fault }),
  );
  const seconds = (clock.monotonicMs() - beganMs) / 1_000;
  const after = await repository.packFacts();
  if (result !== "busy" && (await repositories.exists(address))) {
    await remember(parts, address, (record) => recordAfter(record, kind, result, after, unixSeconds(clock)));
    // Where machines share their packs, the one that joins them counts.
    if (result === "done" && (repositories.shared?.packs.leads() ?? true)) await account(parts, address);
  }
  return { address, kind, result, seconds, before, after, ...(error === undefined ? {} : { error }) };
}

async function remember(
  { store, clock }: HousekeepingParts,
  address: RepositoryAddress,
  change: (record: HousekeepingRecord) => HousekeepingRecord,
): Promise<void> {
  const { owner, identifier, area } = address;
  const work = async (tx: Transaction): Promise<void> => {
    const record = (await housekeepingRecord(tx, address)) ?? newRecord(unixSeconds(clock));
    tx.setRow<HousekeepingRow>("meta", rowKey(address), { ...change(record), owner, identifier, area });
  };
  await store.transact(work, { isLocal: true });
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
    if (!isAsSeen) return;
    const { hereBytes, contributedBytes } = await largeFileTotals(tx, address);
    const disk = { bytes: bytes + hereBytes, pullRequestBytes: pullRequestBytes + contributedBytes };
    await recount(tx, now, disk);
  });
}

interface SchedulerParts extends HousekeepingParts {
  readonly freeBytes: () => number;
  readonly ran: (report: HousekeepingReport) => void;
  /** A full or closing store, or a bug; the look is made again at the next change. */
  readonly failed: (error: unknown) => void;
}

interface Changed {
  readonly address: RepositoryAddress;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** A repository that changes constantly is still looked at after 20 quiet periods. */
const longestWaitInQuiets = 20;
/** After so many it goes on beside whoever works there: a stranger's pull requests must not keep it from ever ending. */
const maxStops = 3;
const weeklyLookMs = 3_600_000;
const theLane = "all repositories";

export class HousekeepingScheduler {
  readonly #parts: SchedulerParts;
  readonly #changed = new Map<string, Changed>();
  /** How often it was stopped or found no room since it was last done; of those that wait for another look. */
  readonly #stopped = new Map<string, number>();
  readonly #lane = new KeyedLock();
  readonly #stop = sharedAbort();
  readonly #timers = new Map<string, () => void>();
  #stopListening: () => void = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #isWorking = false;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
  }

  /** Repositories that wait for a look. */
  get queued(): number {
    return this.#changed.size;
  }

  async open(): Promise<void> {
    this.#stopListening = this.#parts.repositories.onChange((address) => this.#note(address));
    await this.lookAtAll();
    this.#arm("weekly", weeklyLookMs, () => this.#turn(() => this.#weekly()));
  }

  /** As at a start: nobody looked before. */
  async lookAtAll(): Promise<void> {
    for await (const row of catalogueRows(this.#parts.store)) {
      if (row.status !== "soft") this.#note(diskAddress(row));
    }
  }

  /** Resolves when the look under way, and what it found to do, has ended. */
  caughtUp(): Promise<void> {
    return this.#working;
  }

  /** Now, whether it is due or not; waits for its turn. */
  async run(
    address: RepositoryAddress,
    kind: HousekeepingKind,
    signal?: AbortSignal,
    insists = false,
  ): Promise<HousekeepingReport> {
    const either = signal ? AbortSignal.any([signal, this.#stop.signal]) : this.#stop.signal;
    return await this.#lane.run(theLane, async () => {
      either.throwIfAborted();
      const report = await keepHouse(this.#parts, address, kind, either, insists);
      this.#parts.ran(report);
      return report;
    });
  }

  #note(address: RepositoryAddress): void {
    if (this.#stop.signal.aborted) return;
    const lastMs = this.#parts.clock.monotonicMs();
    const firstMs = this.#changed.get(address.key)?.firstMs ?? lastMs;
    this.#changed.set(address.key, { address, firstMs, lastMs });
    this.#armLook();
  }

  #arm(name: string, delayMs: number, callback: () => void): void {
    if (this.#stop.signal.aborted || this.#timers.has(name)) return;
    const cancel = this.#parts.clock.after(delayMs, () => {
      this.#timers.delete(name);
      callback();
    });
    this.#timers.set(name, cancel);
  }

  #ripeAtMs({ firstMs, lastMs }: Changed): number {
    const quietMs = this.#parts.config().gitRepackQuietSecs * 1_000;
    return Math.min(lastMs + quietMs, firstMs + longestWaitInQuiets * quietMs);
  }

  #armLook(): void {
    if (this.#isWorking || this.#changed.size === 0 || this.#timers.has("look")) return;
    let ripeAtMs = Number.POSITIVE_INFINITY;
    for (const changed of this.#changed.values()) ripeAtMs = Math.min(ripeAtMs, this.#ripeAtMs(changed));
    const delayMs = Math.max(0, ripeAtMs - this.#parts.clock.monotonicMs());
    this.#arm("look", delayMs, () => this.#turn(() => this.#lookAtRipe()));
  }

  #turn(work: () => Promise<void>): void {
    this.#isWorking = true;
    this.#working = this.#working
      .then(work)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#parts.failed(error);
      })
      .finally(() => {
        this.#isWorking = false;
        this.#armLook();
        this.#arm("weekly", weeklyLookMs, () => this.#turn(() => this.#weekly()));
      });
  }

  async #lookAtRipe(): Promise<void> {
    const now = this.#parts.clock.monotonicMs();
    const ripe = [...this.#changed.values()].filter((changed) => this.#ripeAtMs(changed) <= now);
    for (const { address, lastMs } of ripe) {
      if (this.#stop.signal.aborted) return;
      // Changed again while others were looked at: it is not quiet.
      if (this.#changed.get(address.key)?.lastMs === lastMs) await this.#look(address);
    }
  }

  async #look(address: RepositoryAddress): Promise<void> {
    const { store, repositories, clock, config, freeBytes } = this.#parts;
    this.#changed.delete(address.key);
    const record = await housekeepingRecord(store, address);
    if (!(await repositories.exists(address))) {
      this.#stopped.delete(address.key);
      if (record) await forgetHousekeeping(store, address);
      return;
    }
    const facts = { ...(await repositories.open(address).packFacts()), record, freeBytes: freeBytes() };
    const kind = housekeepingDue(facts, config(), unixSeconds(clock));
    if (!kind) return;
    const stopped = this.#stopped.get(address.key) ?? 0;
    const insists = stopped >= maxStops;
    const { result } = await this.run(address, insists ? "geometric" : kind, undefined, insists);
    this.#stopped.delete(address.key);
    if (result !== "busy" && result !== "interrupted") return;
    this.#stopped.set(address.key, stopped + 1);
    this.#note(address);
  }

  /** Garbage whose grace ends in a repository nobody touches. */
  async #weekly(): Promise<void> {
    const { store, config, clock } = this.#parts;
    for await (const { address, record } of housekeepingRows(store)) {
      if (garbageDue(record, record.packs, config(), unixSeconds(clock))) this.#note(address);
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#stopListening();
    for (const cancel of this.#timers.values()) cancel();
    await this.#working;
    // One an operator asked for may still run.
    await this.#lane.run(theLane, async () => undefined);
  }
}
