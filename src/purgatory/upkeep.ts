// Housekeeping in the background: hears which repositories changed, looks at them when they have been quiet for a
// while, and does what is due, one at a time over all of them. What waits is one entry a repository; nothing is
// scanned, except once after a start (what changed before it) and the records of those that must be visited weekly.
// close() stops what runs within moments.

import { unixSeconds } from "../base/clock.js";
import { KeyedLock } from "../base/keyed-lock.js";
import { catalogueRows } from "../catalogue/repositories.js";
import { diskAddress, type RepositoryAddress } from "../git/address.js";
import { garbageDue, type HousekeepingKind, type HousekeepingRules, housekeepingDue } from "../git/housekeeping.js";
import {
  forgetHousekeeping,
  type HousekeepingParts,
  type HousekeepingReport,
  housekeepingRecord,
  housekeepingRows,
  keepHouse,
} from "./housekeeping.js";

export interface UpkeepParts extends HousekeepingParts {
  readonly rules: () => HousekeepingRules;
  /** How long a repository is left alone after its last change. */
  readonly quietMs: () => number;
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

/** One that never is quiet is looked at all the same. */
const longestWaitInQuiets = 20;
/** After so many it goes on beside whoever works there: a stranger's pull requests must not keep it from ever ending. */
const maxStops = 3;
const weeklyLookMs = 3_600_000;
const theLane = "all repositories";

export class Upkeep {
  readonly #parts: UpkeepParts;
  readonly #changed = new Map<string, Changed>();
  /** How often it was stopped or found no room since it was last done; of those that wait for another look. */
  readonly #stopped = new Map<string, number>();
  readonly #lane = new KeyedLock();
  readonly #stop = new AbortController();
  readonly #timers = new Map<string, () => void>();
  #stopListening: () => void = () => undefined;
  #working: Promise<void> = Promise.resolve();
  #isWorking = false;

  constructor(parts: UpkeepParts) {
    this.#parts = parts;
  }

  /** Repositories that wait for a look. */
  get queued(): number {
    return this.#changed.size;
  }

  async open(): Promise<void> {
    this.#stopListening = this.#parts.repositories.onChange((address) => this.#note(address));
    for await (const row of catalogueRows(this.#parts.store)) {
      if (row.status !== "soft") this.#note(diskAddress(row));
    }
    this.#arm("weekly", weeklyLookMs, () => this.#turn(() => this.#weekly()));
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
    const quietMs = this.#parts.quietMs();
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
    const { store, repositories, clock, rules, freeBytes } = this.#parts;
    this.#changed.delete(address.key);
    const record = await housekeepingRecord(store, address);
    if (!(await repositories.exists(address))) {
      this.#stopped.delete(address.key);
      if (record) await forgetHousekeeping(store, address);
      return;
    }
    const facts = { ...(await repositories.open(address).packFacts()), record, freeBytes: freeBytes() };
    const kind = housekeepingDue(facts, rules(), unixSeconds(clock));
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
    const { store, rules, clock } = this.#parts;
    for await (const { address, record } of housekeepingRows(store)) {
      if (garbageDue(record, record.packs, rules(), unixSeconds(clock))) this.#note(address);
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
