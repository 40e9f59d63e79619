// One bare repository: its ref table in memory, changed only here, and everything that may be asked of it or done to
// it. Holds no state of its own: tables, locks and counters are in the RepositoryContext all repositories share, so that a
// thousand repositories cost nothing while nobody looks at them.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { type EventId, isEventId, type Oid } from "../nostr/ids.js";
import type { RefName } from "../nostr/ref-name.js";
import type { RepositoryAddress } from "./address.js";
import { copyObjects } from "./copy-objects.js";
import { dropDamagedPacks } from "./damaged-packs.js";
import { ifPresent, replaceFile, syncBelow, syncPath } from "./durable-files.js";
import { checkRepository } from "./fsck.js";
import type { GivingWay } from "./giving-way.js";
import { housekeep, packFactsOf } from "./housekeeping.js";
import type { KeyedLock } from "./keyed-lock.js";
import { missingObjects, type ObjectPlace, objectTypes, peelTags } from "./objects.js";
import { claimUnclaimed, dropUnclaimed, QuarantineDirectory, readUnclaimed } from "./quarantine.js";
import { mayBePeeled, readRefFiles, sortRefs } from "./ref-files.js";
import type { RefTables } from "./ref-tables.js";
import { type RefChange, writeRefs } from "./ref-transaction.js";
import type { RefsKept } from "./refs-kept.js";
import { bytesBelow, sweepRefLocks, sweepRepositoryFiles, unclaimedFolder } from "./repository-files.js";
import type { Git } from "./run.js";
import type {
  HousekeepingOptions,
  HousekeepingOutcome,
  ObjectType,
  PackFacts,
  RefTable,
  RefUpdate,
  RefUpdateResult,
  RefValue,
  Repository,
  UnclaimedData,
  UpdateRefsOptions,
} from "./types.js";

export interface RepositoryContext {
  readonly git: Git;
  readonly clock: Clock;
  readonly tables: RefTables;
  readonly refsKept: RefsKept;
  /** Innermost: around reading and changing one repository's refs. */
  readonly refLocks: KeyedLock;
  /** Outer: one piece of work at a time on a repository (release, the end of a push). */
  readonly workLocks: KeyedLock;
  readonly givingWay: GivingWay;
  /** Repositories whose leftovers of an earlier life have been removed. */
  readonly swept: Set<string>;
  /** Its packs or refs are not what they were. */
  readonly changed: (address: RepositoryAddress) => void;
}

export class GitRepository implements Repository {
  constructor(
    readonly context: RepositoryContext,
    readonly address: RepositoryAddress,
    readonly directory: string,
  ) {}

  get #key(): string {
    return this.address.key;
  }

  get place(): ObjectPlace {
    return { git: this.context.git, directory: this.directory };
  }

  async refs(): Promise<RefTable> {
    const cached = this.context.tables.get(this.#key);
    if (cached) return cached;
    return await this.context.refLocks.run(this.#key, () => this.#table());
  }

  async shownRefs(): Promise<RefTable> {
    return this.context.tables.shown(this.#key) ?? (await this.refs());
  }

  publish(): void {
    this.context.tables.publish(this.#key);
  }

  #keep(before: RefTable, changed: Omit<RefTable, "generation">, withhold: boolean | undefined): void {
    if (withhold) this.context.tables.withhold(this.#key, before, changed);
    else this.context.tables.set(this.#key, changed);
  }

  /** Under the ref lock only. */
  async #table(): Promise<RefTable> {
    const cached = this.context.tables.get(this.#key);
    if (cached) return cached;
    await this.#sweepOnce();
    const { head, refs, unpeeled } = await readRefFiles(this.directory);
    await this.#peel(refs, unpeeled, this.place);
    return this.context.tables.set(this.#key, { head, refs: sortRefs(refs) });
  }

  async #sweepOnce(): Promise<void> {
    if (this.context.swept.has(this.#key)) return;
    await sweepRepositoryFiles(this.directory);
    this.context.swept.add(this.#key);
  }

  async #peel(refs: Map<RefName, RefValue>, names: readonly RefName[], place: ObjectPlace): Promise<void> {
    const oids = names.flatMap((name) => refs.get(name)?.oid ?? []);
    if (oids.length === 0) return;
    const peeled = await peelTags(place, oids);
    for (const name of names) {
      const oid = refs.get(name)?.oid;
      if (oid) refs.set(name, { oid, peeled: peeled.get(oid) });
    }
  }

  async missingObjects(oids: readonly Oid[], options: { readonly deep?: boolean } = {}): Promise<ReadonlySet<Oid>> {
    if (options.deep) return await missingObjects(this.place, oids, { deep: true });
    // What a ref names was complete when the ref was written.
    const { refs } = await this.refs();
    const named = new Set([...refs.values()].map(({ oid }) => oid));
    return await missingObjects(
      this.place,
      oids.filter((oid) => !named.has(oid)),
    );
  }

  objectTypes(oids: readonly Oid[]): Promise<ReadonlyMap<Oid, ObjectType>> {
    return objectTypes(this.place, oids);
  }

  async updateRefs(updates: readonly RefUpdate[], options: UpdateRefsOptions = {}): Promise<RefUpdateResult> {
    return await this.context.refLocks.run(this.#key, async () => {
      const first = await this.#tryUpdate(updates, options);
      if (first.ok || first.code !== "conflict") return first;
      // Somebody changed the files behind our back: look at them again, once.
      this.context.tables.delete(this.#key);
      return await this.#tryUpdate(updates, options);
    });
  }

  async #tryUpdate(updates: readonly RefUpdate[], options: UpdateRefsOptions): Promise<RefUpdateResult> {
    const table = await this.#table();
    const changes: RefChange[] = [];
    for (const [ref, to] of new Map(updates.map((update) => [update.ref, update.to]))) {
      const from = table.refs.get(ref)?.oid;
      if (from !== to) changes.push({ ref, from, to });
    }
    const { beforeCommit = async () => true, quarantine } = options;
    const changed = changes.map(({ ref, to }) => ({ ref, to }));
    if (changes.length === 0) {
      return (await beforeCommit()) ? { ok: true, changed } : { ok: false, code: "vetoed", reason: "" };
    }
    const place =
      quarantine instanceof QuarantineDirectory ? { ...this.place, env: quarantine.readingEnvironment } : this.place;
    const refs = new Map(table.refs);
    for (const { ref, to } of changes) {
      if (to === undefined) refs.delete(ref);
      else refs.set(ref, { oid: to, peeled: undefined });
    }
    const changedNames = changes.filter(({ ref, to }) => to !== undefined && mayBePeeled(ref)).map(({ ref }) => ref);
    await this.#peel(refs, changedNames, place);
    const release = this.context.tables.pin(this.#key);
    try {
      const result = await writeRefs(place, changes, async () => {
        if (!(await beforeCommit())) return false;
        this.context.refsKept.changes(this.#key, table);
        return true;
      });
      if (result.status === "vetoed") return { ok: false, code: "vetoed", reason: "" };
      if (result.status === "failed") {
        this.context.tables.delete(this.#key);
        // A killed update-ref leaves its locks, and every later update would fail. Other pushes' quarantines stay.
        if (result.exit.signal) await sweepRefLocks(this.directory);
        return { ok: false, code: "conflict", reason: result.exit.stderr.trim() };
      }
      const isReordered = changes.some(({ from }) => from === undefined);
      this.#keep(table, { head: table.head, refs: isReordered ? sortRefs(refs) : refs }, options.withhold);
      this.context.changed(this.address);
      return { ok: true, changed };
    } finally {
      release();
    }
  }

  async setHead(branch: RefName, options: { readonly withhold?: boolean } = {}): Promise<boolean> {
    return await this.context.refLocks.run(this.#key, async () => {
      const table = await this.#table();
      if (!table.refs.has(branch) || !branch.startsWith("refs/heads/")) return false;
      if (table.head === branch) return true;
      this.context.refsKept.changes(this.#key, table);
      await replaceFile(join(this.directory, "HEAD"), `ref: ${branch}\n`);
      this.#keep(table, { head: branch, refs: table.refs }, options.withhold);
      return true;
    });
  }

  async syncRefs(): Promise<void> {
    await syncBelow(join(this.directory, "refs"));
    await ifPresent(syncPath(join(this.directory, "packed-refs")));
    await ifPresent(syncPath(this.directory));
  }

  async copyObjectsFrom(other: Repository, oids: readonly Oid[]): Promise<boolean> {
    const missing = [...(await this.missingObjects(oids))];
    if (missing.length === 0) return true;
    if ((await other.missingObjects(missing)).size > 0) return false;
    const quarantine = await this.quarantine();
    try {
      const { refs } = await this.refs();
      const here = [...new Set([...refs.values()].map(({ oid }) => oid))];
      await copyObjects({ ...this.place, directory: other.directory }, quarantine, missing, here);
      if ((await quarantine.missingObjects(missing)).size > 0) return false;
      await quarantine.migrate();
      return true;
    } finally {
      await quarantine.drop();
    }
  }

  async quarantine(): Promise<QuarantineDirectory> {
    // The first look at a repository sweeps it: that must not happen under a quarantine's feet.
    await this.refs();
    return await QuarantineDirectory.make(this.context.git, this.directory, this.context.clock);
  }

  async unclaimed(): Promise<readonly UnclaimedData[]> {
    const names = (await ifPresent(readdir(join(this.directory, unclaimedFolder)))) ?? [];
    const all = await Promise.all(names.filter(isEventId).map((id) => readUnclaimed(this.directory, id)));
    return all.filter((data) => data !== undefined);
  }

  claim(eventId: EventId, tip: Oid): Promise<boolean> {
    return this.duringPush(async () => {
      // Sweeps at the first look: not while packs move.
      await this.refs();
      return await claimUnclaimed(this.place, eventId, tip);
    });
  }

  dropUnclaimed(eventId: EventId): Promise<void> {
    return dropUnclaimed(this.directory, eventId);
  }

  async sizeBytes(): Promise<number> {
    return (
      (await bytesBelow(join(this.directory, "objects"))) + (await bytesBelow(join(this.directory, unclaimedFolder)))
    );
  }

  fsck(): Promise<readonly string[]> {
    return checkRepository(this.place);
  }

  /** Removes packs that cannot be read where nothing needs them any more; true when none is left. */
  async dropDamagedPacks(): Promise<boolean> {
    const { givingWay, workLocks } = this.context;
    const drop = async (): Promise<boolean> => {
      const tips = [...new Set([...(await this.refs()).refs.values()].map(({ oid }) => oid))];
      const trial = await this.quarantine();
      try {
        return await dropDamagedPacks(trial, tips);
      } finally {
        await trial.drop();
      }
    };
    return await givingWay.during([this.#key], () => workLocks.run(this.#key, drop));
  }

  packFacts(): Promise<PackFacts> {
    return packFactsOf(this.directory);
  }

  async housekeep(options: HousekeepingOptions = {}): Promise<HousekeepingOutcome> {
    const { givingWay, refLocks } = this.context;
    const outcome = await givingWay.tidy(this.#key, options.signal, async (signal) => {
      await this.refs();
      // A killed pack-refs leaves locks, and every later one would fail.
      return await housekeep(this.place, { ...options, signal }, (packRefs) =>
        refLocks.run(this.#key, () => packRefs().catch((error) => this.#afterFailure(error, sweepRefLocks))),
      );
    });
    return outcome ?? "busy";
  }

  async bytesOnlyOf(prefix: string): Promise<number | undefined> {
    const others = ["--not", "--branches", "--tags"];
    const args = [
      "rev-list",
      "--disk-usage",
      "--objects",
      "--use-bitmap-index",
      `--glob=${prefix}*`,
      ...others,
    ] as const;
    const result = await this.context.git.run([...args], { directory: this.directory });
    const bytes = Number(result.stdout.toString("utf8").trim());
    return result.code === 0 && Number.isSafeInteger(bytes) ? bytes : undefined;
  }

  /** A killed git leaves locks, and every later one would fail. */
  async #afterFailure(error: unknown, sweep: (directory: string) => Promise<void>): Promise<never> {
    await sweep(this.directory);
    throw error;
  }

  /** While a push runs, housekeeping stays away: its quarantine may rest on objects that no ref holds. */
  async duringPush<T>(work: () => Promise<T>): Promise<T> {
    const { givingWay, changed } = this.context;
    return await givingWay.during([this.#key], work).finally(() => changed(this.address));
  }
}
