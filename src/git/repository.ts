// One bare repository: everything that may be asked of it or done to it. Its refs are in repository-refs.ts.

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type EventId, isEventId, type Oid } from "../nostr/ids.js";
import { copyObjects } from "./copy-objects.js";
import { dropDamagedPacks } from "./damaged-packs.js";
import { ifPresent } from "./durable-files.js";
import { checkRepository } from "./fsck.js";
import { housekeep, packFactsOf } from "./housekeeping.js";
import { bytesOnlyReachedBy, missingObjects, objectTypes } from "./objects.js";
import { claimUnclaimed, dropUnclaimed, QuarantineDirectory, readUnclaimed } from "./quarantine.js";
import { bytesBelow, sweepRefLocks, unclaimedFolder } from "./repository-files.js";
import { RepositoryRefs } from "./repository-refs.js";
import type {
  HousekeepingOptions,
  HousekeepingOutcome,
  ObjectType,
  PackFacts,
  Repository,
  UnclaimedData,
} from "./types.js";

export class GitRepository extends RepositoryRefs implements Repository {
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
    return await givingWay.during([this.key], () => workLocks.run(this.key, drop));
  }

  packFacts(): Promise<PackFacts> {
    return packFactsOf(this.directory);
  }

  async housekeep(options: HousekeepingOptions = {}): Promise<HousekeepingOutcome> {
    const { givingWay, refLocks } = this.context;
    const outcome = await givingWay.tidy(this.key, options.signal, async (signal) => {
      await this.refs();
      // A killed pack-refs leaves locks, and every later one would fail.
      return await housekeep(this.place, { ...options, signal }, (packRefs) =>
        refLocks.run(this.key, () =>
          packRefs().catch(async (error: unknown) => {
            await sweepRefLocks(this.directory);
            throw error;
          }),
        ),
      );
    });
    return outcome ?? "busy";
  }

  bytesOnlyOf(prefix: string): Promise<number | undefined> {
    return bytesOnlyReachedBy(this.place, prefix);
  }

  /** While a push runs, housekeeping stays away: its quarantine may rest on objects that no ref holds. */
  async duringPush<T>(work: () => Promise<T>): Promise<T> {
    const { givingWay, changed } = this.context;
    return await givingWay.during([this.key], work).finally(() => changed(this.address));
  }
}
