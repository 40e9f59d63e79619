// Data of pushes whose event nobody knows yet, where several machines share their packs: the packs lie in the pack store, a row
// names them beside the placeholder's (purgatory/placeholders.ts), and a machine fetches them when it needs them.

import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import { makeDirectory, removeAll } from "../base/durable-files.js";
import { KeyedLock } from "../base/keyed-lock.js";
import {
  bytesOf,
  forgetUnclaimed,
  packList,
  type StoredPack,
  setUnclaimed,
  unclaimedFor,
  unclaimedPacks,
} from "../catalogue/packs.js";
import type { EventId } from "../nostr/event.js";
import type { Store, Transaction } from "../store/port.js";
import type { RepositoryAddress } from "./address.js";
import type { UnclaimedData } from "./quarantine.js";
import { packsIn, unclaimedEventsIn } from "./repository-files.js";

interface UnclaimedParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly put: (address: RepositoryAddress, folder: string, name: string) => Promise<StoredPack>;
  readonly fetch: (folder: string, pack: StoredPack) => Promise<void>;
  readonly mayBeListed: (tx: Transaction, packs: readonly StoredPack[]) => Promise<boolean>;
}

export class UnclaimedPacks {
  readonly #locks = new KeyedLock();

  constructor(private readonly parts: UnclaimedParts) {}

  async all(address: RepositoryAddress): Promise<UnclaimedData[]> {
    const rows = await unclaimedPacks(this.parts.store, address);
    return rows.map((row) => ({ ...row, bytes: bytesOf(row.packs) }));
  }

  async bytes(address: RepositoryAddress): Promise<number> {
    return (await this.all(address)).reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Puts the packs of a folder into the store, beside what is kept for that event already. */
  async keep(
    address: RepositoryAddress,
    { eventId, tip, sinceMs }: UnclaimedData,
    folder: string,
  ): Promise<UnclaimedData> {
    const before = await unclaimedFor(this.parts.store, address, eventId);
    const packs = new Map((before?.packs ?? []).map((pack) => [pack.name, pack]));
    for (const name of await packsIn(folder)) packs.set(name, await this.parts.put(address, folder, name));
    const all = [...packs.values()];
    return { eventId, tip, sinceMs: before?.sinceMs ?? sinceMs, packs: all, bytes: bytesOf(all) };
  }

  /** With the row of the placeholder. False: the repository is gone, or the packs are about to. */
  async note(tx: Transaction, address: RepositoryAddress, data: UnclaimedData): Promise<boolean> {
    const { eventId, tip, sinceMs, packs = [] } = data;
    const known = new Set((await unclaimedFor(tx, address, eventId))?.packs.map(({ name }) => name));
    const isNew = packs.filter(({ name }) => !known.has(name));
    if (!(await packList(tx, address)) || !(await this.parts.mayBeListed(tx, isNew))) return false;
    setUnclaimed(tx, address, { eventId, tip, sinceMs, packs });
    return true;
  }

  forget(tx: Transaction, address: RepositoryAddress, id: EventId): Promise<void> {
    return forgetUnclaimed(tx, address, id, this.parts.clock.nowMs());
  }

  /** Copies in that folder on this machine whose row is gone: the data expired, or another machine claimed it. */
  async dropForgotten(address: RepositoryAddress, folder: string): Promise<void> {
    for (const id of await unclaimedEventsIn(folder)) {
      await this.#locks.run(`${address.key} ${id}`, async () => {
        if (!(await unclaimedFor(this.parts.store, address, id))) await removeAll(join(folder, id));
      });
    }
  }

  /** Its packs into that folder on this machine. */
  async bringHere(address: RepositoryAddress, id: EventId, folder: string): Promise<void> {
    await this.#locks.run(`${address.key} ${id}`, async () => {
      const row = await unclaimedFor(this.parts.store, address, id);
      if (row) await makeDirectory(folder);
      for (const pack of row?.packs ?? []) await this.parts.fetch(folder, pack);
    });
  }
}
