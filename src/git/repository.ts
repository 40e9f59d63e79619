// One bare repository: everything that may be asked of it or done to it. Its refs are in repository-refs.ts.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent } from "../base/durable-files.js";
import type { RefValue } from "../catalogue/refs.js";
import { type EventId, isEventId } from "../nostr/event.js";
import type { Oid, RefName } from "../nostr/nip34.js";
import { changeRefs, Overtaken, RefChanges } from "./change-refs.js";
import { checkRepository, dropDamagedPacks } from "./fsck.js";
import {
  type HousekeepingOptions,
  type HousekeepingOutcome,
  housekeep,
  type PackFacts,
  packFactsOf,
} from "./housekeeping.js";
import { bytesOnlyReachedBy, missingObjects, type ObjectType, objectTypes } from "./objects.js";
import {
  copyObjects,
  copyUnclaimed,
  dropUnclaimed,
  keepUnclaimed,
  nothingPlaced,
  type Placed,
  QuarantineDirectory,
  reachedBy,
  readUnclaimed,
  type UnclaimedData,
  unclaimedObjects,
} from "./quarantine.js";
import { type RefTable, refsAfter } from "./ref-tables.js";
import {
  bytesBelow,
  largeFilesFolder,
  retiredFolder,
  sweepRefLocks,
  unclaimedEventsIn,
  unclaimedFolder,
} from "./repository-files.js";
import { type RefUpdate, RepositoryRefs } from "./repository-refs.js";
import { ObjectsUnavailableError } from "./run.js";
import type { SharedPacks } from "./shared-packs.js";

/** More haves cost more than they save. */
const maxOtherTips = 2_000;

export class GitRepository extends RepositoryRefs {
  /**
   * Which of these are not here with everything they reach. `deep`: do not trust what existing refs reach (repair).
   * `evenLost`: packs that the pack store has lost keep nobody from looking at the rest (hunt).
   */
  async missingObjects(
    oids: readonly Oid[],
    options: { readonly deep?: boolean; readonly evenLost?: boolean } = {},
  ): Promise<ReadonlySet<Oid>> {
    await this.ready()?.catch((error: unknown) => {
      const isLost = error instanceof ObjectsUnavailableError && error.how === "lost";
      if (!isLost || !options.evenLost) throw error;
    });
    if (options.deep) return await missingObjects(this.place, oids, { deep: true });
    // What a ref names was complete when the ref was written.
    const { refs } = await this.refs();
    const named = new Set([...refs.values()].map(({ oid }) => oid));
    return await missingObjects(
      this.place,
      oids.filter((oid) => !named.has(oid)),
    );
  }

  /** For changes that nothing else has to accompany. Values that are already right are left out. */
  async updateRefs(updates: readonly RefUpdate[], head?: RefName): Promise<void> {
    await changeRefs(this.context, new RefChanges().add(this, updates, head), async () => undefined);
  }

  async objectTypes(oids: readonly Oid[]): Promise<ReadonlyMap<Oid, ObjectType>> {
    await this.ready();
    return await objectTypes(this.place, oids);
  }

  /**
   * Copies these and all they reach that is not here, as one pack. Undefined when the other lacks some of it.
   */
  async copyObjectsFrom(other: GitRepository, oids: readonly Oid[]): Promise<Placed | undefined> {
    const missing = [...(await this.missingObjects(oids))];
    if (missing.length === 0) return nothingPlaced;
    if ((await other.missingObjects(missing)).size > 0) return undefined;
    return await this.duringPush(async () => {
      const quarantine = await this.quarantine();
      try {
        await copyObjects({ ...this.place, directory: other.directory }, quarantine, missing, await this.tips());
        if ((await quarantine.missingObjects(missing)).size > 0) return undefined;
        return await this.putIntoPlace(quarantine);
      } finally {
        await quarantine.drop();
      }
    });
  }

  /** Durably. If the objects are taken back, then under the lock under which they came. */
  async putIntoPlace(quarantine: QuarantineDirectory): Promise<Placed> {
    const { packs, takenBack } = this.context;
    const brought = await packs?.bring(this, quarantine.packFolder, quarantine.basis);
    const placed = await quarantine.migrate().catch((error: unknown) => {
      brought?.end();
      throw error;
    });
    const takeBack = async (): Promise<void> => {
      takenBack.count += 1;
      await placed.takeBack();
      brought?.end();
      // Whether the transaction was written may not be known: its list will say.
      packs?.forget(this.key);
    };
    return brought
      ? { bytes: brought.bytes, list: (tx) => brought.list(tx), listed: () => brought.end(), takeBack }
      : { ...placed, takeBack };
  }

  /** Durably, for who comes to name them later. Throws Overtaken. */
  async keep(quarantine: QuarantineDirectory): Promise<void> {
    const placed = await this.putIntoPlace(quarantine);
    if (!this.context.packs) return;
    try {
      await this.context.store.transact(async (tx) => {
        if (!(await placed.list(tx))) throw new Overtaken(`the packs of ${this.address.label} have changed`);
      });
      placed.listed();
    } catch (error) {
      await placed.takeBack();
      throw error;
    }
  }

  /** `evenDamaged`: packs that are lost do not matter, because everything is brought again. */
  async quarantine({ evenDamaged = false } = {}): Promise<QuarantineDirectory> {
    // The first look at a repository sweeps it: that must not happen under a quarantine's feet.
    await this.refs();
    const { packs, git, clock } = this.context;
    // Before the objects are looked at: what goes after this is noticed.
    const basis = await packs?.listed.basisOf(this.address);
    await this.ready({ tolerant: evenDamaged });
    const quarantine = await QuarantineDirectory.make(git, this.directory, clock);
    quarantine.basis = basis;
    return quarantine;
  }

  /** Before what came is checked again: it rests on what is here now. */
  async restAnew(quarantine: QuarantineDirectory): Promise<void> {
    quarantine.basis = await this.context.packs?.listed.basisOf(this.address);
    await this.ready();
  }

  async unclaimed(): Promise<readonly UnclaimedData[]> {
    const { packs } = this.context;
    if (packs) return await packs.unclaimed.all(this.address);
    const ids = await unclaimedEventsIn(join(this.directory, unclaimedFolder));
    const all = await Promise.all(ids.map((id) => readUnclaimed(this.directory, id)));
    return all.filter((data) => data !== undefined);
  }

  /** In its directory on this machine. */
  async hasLargeFiles(): Promise<boolean> {
    const names = await ifPresent(
      readdir(join(this.directory, largeFilesFolder), { recursive: true, withFileTypes: true }),
    );
    return names?.some((entry) => entry.isFile()) ?? false;
  }

  /** Keeps what the tip reaches apart as the data of an unknown event. */
  async keepUnclaimed(quarantine: QuarantineDirectory, eventId: EventId, tip: Oid): Promise<UnclaimedData> {
    const reached = await reachedBy(quarantine, [tip], await this.tips());
    try {
      const kept = await keepUnclaimed(quarantine, reached, eventId, tip);
      const { packs } = this.context;
      return packs ? await packs.unclaimed.keep(this.address, kept, reached.packFolder) : kept;
    } finally {
      await reached.drop();
      this.#unclaimedChanged();
    }
  }

  /**
   * The event came: if its tip, with all it reaches, is among the data, that much is put into place in the repository.
   * Undefined: it is not. The data itself goes when the claim is written (dropUnclaimed).
   */
  claim(eventId: EventId, tip: Oid): Promise<Placed | undefined> {
    return this.duringPush(async () => {
      const into = await this.quarantine();
      try {
        await this.#bringUnclaimed(eventId);
        const isHere = await copyUnclaimed(into, eventId, tip, await this.tips());
        return isHere ? await this.putIntoPlace(into) : undefined;
      } finally {
        await into.drop();
      }
    });
  }

  async #bringUnclaimed(eventId: EventId): Promise<void> {
    const folder = join(unclaimedObjects(this.directory, eventId), "pack");
    await this.context.packs?.unclaimed.bringHere(this.address, eventId, folder);
  }

  /** Deletes the data of an unclaimed push, objects included. */
  async dropUnclaimed(eventId: EventId): Promise<void> {
    await dropUnclaimed(this.directory, eventId);
    this.#unclaimedChanged();
  }

  /** Branches and tags, and as many others as are worth telling git about. */
  async tips(): Promise<Oid[]> {
    const oids = new Set<Oid>();
    const others = new Set<Oid>();
    for (const [ref, { oid }] of (await this.refs()).refs) {
      if (!ref.startsWith("refs/nostr/")) oids.add(oid);
      else if (others.size < maxOtherTips) others.add(oid);
    }
    return [...new Set([...oids, ...others])];
  }

  /** What can be fetched: under `/prs/` also the data of events nobody knows yet. */
  async fetchableRefs(): Promise<RefTable> {
    const shown = await this.refs();
    if (this.address.area !== "prs") return shown;
    const { tables, fetchable } = this.context;
    const key = `unclaimed ${this.key}`;
    const kept = tables.get(key);
    if (kept && fetchable.basis.get(kept) === shown) return kept;
    const changes = fetchable.changes;
    const unclaimed = new Map<RefName, RefValue>();
    for (const { eventId, tip } of await this.unclaimed()) {
      const ref = `refs/nostr/${eventId}` as RefName;
      if (!shown.refs.has(ref)) unclaimed.set(ref, { oid: tip, peeled: undefined });
    }
    if (unclaimed.size === 0) return shown;
    const table = tables.set(key, { ...shown, refs: refsAfter(shown.refs, unclaimed) });
    fetchable.basis.set(table, shown);
    // Read while it changed: good for this one answer only.
    if (fetchable.changes !== changes) tables.delete(key);
    return table;
  }

  /** Where the objects of these unclaimed tips lie: for a fetch that asks for them. */
  async unclaimedObjects(tips: ReadonlySet<string>): Promise<string[]> {
    const { refs } = await this.refs();
    const found: string[] = [];
    for (const [ref, { oid }] of (await this.fetchableRefs()).refs) {
      const id = ref.slice("refs/nostr/".length);
      if (!tips.has(oid) || refs.has(ref) || !isEventId(id)) continue;
      await this.#bringUnclaimed(id);
      found.push(unclaimedObjects(this.directory, id));
    }
    return found;
  }

  /** Where packs are that another machine has replaced, while a fetch may still want them. */
  async retiredObjects(): Promise<string[]> {
    if (!this.context.packs) return [];
    const folder = join(this.directory, retiredFolder);
    return (await ifPresent(readdir(folder))) ? [folder] : [];
  }

  #unclaimedChanged(): void {
    const { tables, fetchable } = this.context;
    fetchable.changes += 1;
    tables.delete(`unclaimed ${this.key}`);
  }

  /** Of git's objects. */
  async sizeBytes(): Promise<number> {
    const { packs } = this.context;
    if (packs) return (await packs.listed.bytes(this.address)) + (await packs.unclaimed.bytes(this.address));
    return (
      (await bytesBelow(join(this.directory, "objects"))) + (await bytesBelow(join(this.directory, unclaimedFolder)))
    );
  }

  /** What is wrong with it, in sentences; empty when sound. No repack runs beside it: fsck would take a pack that goes for a damaged one. */
  async fsck(): Promise<readonly string[]> {
    const behind = await this.bringInLine().then(
      () => [],
      (error: unknown) => [`its refs could not be written to git's files: ${error}`],
    );
    const check = async (): Promise<string[]> => checkRepository(this.place, await this.expectedFormat());
    const found = await this.context.inUse.during([this.key], check, { always: true });
    return [...behind, ...found];
  }

  /** Removes packs that cannot be read where nothing needs them any more; true when none is left. */
  async dropDamagedPacks(): Promise<boolean> {
    const { inUse, workLocks } = this.context;
    const drop = async (): Promise<boolean> => {
      const tips = [...new Set([...(await this.refs()).refs.values()].map(({ oid }) => oid))];
      if (this.context.packs) return await this.#dropLost(this.context.packs, tips);
      const trial = await this.quarantine();
      try {
        return await dropDamagedPacks(trial, tips);
      } finally {
        await trial.drop();
      }
    };
    return await inUse.during([this.key], () => workLocks.run(this.key, drop), { always: true });
  }

  /** After everything was brought again: packs that the pack store has lost are not needed any more. */
  async dropLost(): Promise<void> {
    if (this.context.packs) await this.dropDamagedPacks();
  }

  /** A copy that is damaged is fetched again. What the pack store itself has lost leaves the list when nothing needs it. */
  async #dropLost(packs: SharedPacks, tips: readonly Oid[]): Promise<boolean> {
    await packs.checkCopies(this);
    await this.ready({ tolerant: true });
    const lost = await packs.listed.lost(this.address);
    if (lost.length === 0) return true;
    if ((await missingObjects(this.place, tips, { deep: true })).size > 0) return false;
    const isDropped = await packs.listed.dropLost(this.address, lost);
    packs.forget(this.key);
    return isDropped;
  }

  async packFacts(): Promise<PackFacts> {
    const facts = await packFactsOf(this.directory);
    const bytes = await this.context.packs?.listed.bytes(this.address);
    return bytes === undefined ? facts : { ...facts, bytes };
  }

  /** Repacks in the background; gives way to whoever works there. */
  async housekeep(options: HousekeepingOptions = {}): Promise<HousekeepingOutcome> {
    const { inUse, refLocks } = this.context;
    // What no file of git's names would count as garbage. Packs may be joined all the same where only lost objects are in the way.
    await this.bringInLine();
    if (this.context.behind.has(this.key) && (options.cruft === true || !this.isStuck)) return "busy";
    const insists = options.insists === true && options.cruft !== true;
    const tidy = async (signal: AbortSignal): Promise<HousekeepingOutcome> => {
      await this.refs();
      const { packs } = this.context;
      const table = packs && (await this.refs());
      return await housekeep(
        this.place,
        { ...options, insists, signal },
        {
          // A killed pack-refs leaves locks, and every later one would fail.
          withRefsLocked: (packRefs) =>
            refLocks.run(this.key, () =>
              packRefs().catch(async (error: unknown) => {
                await sweepRefLocks(this.directory);
                throw error;
              }),
            ),
          ...(packs && table && { repack: (run) => packs.repack(this, table, run, options.cruft === true) }),
        },
      );
    };
    const outcome = await inUse.tidy(this.key, options.signal, tidy, insists);
    return outcome ?? "busy";
  }

  /** Bytes on disk of what refs below `prefix` reach and branches and tags do not; undefined when git cannot tell. */
  async bytesOnlyOf(prefix: string): Promise<number | undefined> {
    await this.bringInLine();
    return await bytesOnlyReachedBy(this.place, prefix);
  }

  /** While a push runs, housekeeping stays away: its quarantine may rest on objects that no ref holds. */
  async duringPush<T>(work: () => Promise<T>): Promise<T> {
    const { inUse, changed, packs } = this.context;
    const unmark = packs?.repositoryLocks?.mark(this.key);
    return await inUse.during([this.key], work).finally(() => {
      unmark?.();
      changed(this.address);
    });
  }
}
