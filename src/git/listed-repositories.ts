// Which repositories there are where several machines share their packs, and which packs each has: questions to the rows
// (catalogue/packs.ts) and changes of them. Knows no directory and no pack store.

import { randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.js";
import { hasUnclaimedFiles, largeFileTotals } from "../catalogue/large-files.js";
import {
  bytesOf,
  listedPacks,
  makeList,
  type PackBasis,
  packList,
  packLists,
  removeList,
  replacePacks,
  stillRests,
  unclaimedPacks,
} from "../catalogue/packs.js";
import type { RepositoryArea } from "../catalogue/repositories.js";
import type { ObjectFormat } from "../nostr/nip34.js";
import type { Store, TableReader, Transaction } from "../store/port.js";
import { diskAddress, type RepositoryAddress } from "./address.js";

export const newId = (): string => randomBytes(8).toString("hex");

export class ListedRepositories {
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  async exists(address: RepositoryAddress, reader: TableReader = this.#store): Promise<boolean> {
    return (await packList(reader, address)) !== undefined;
  }

  async formatOf(address: RepositoryAddress): Promise<ObjectFormat | undefined> {
    return (await packList(this.#store, address))?.format;
  }

  async *list(areas: readonly RepositoryArea[], reader: TableReader = this.#store): AsyncGenerator<RepositoryAddress> {
    for await (const list of packLists(reader)) {
      if (areas.includes(list.area ?? "main")) yield diskAddress(list);
    }
  }

  /** Its row; one that is there stays as it is. */
  async make(address: RepositoryAddress, wanted: () => Promise<ObjectFormat>): Promise<void> {
    if (await this.exists(address)) return;
    const [made, format] = [newId(), await wanted()];
    await this.#store.transact((tx) => makeList(tx, address, made, format));
  }

  async isOfAnother(reader: TableReader, address: RepositoryAddress, format: ObjectFormat): Promise<boolean> {
    const list = await packList(reader, address);
    return list !== undefined && list.format !== format;
  }

  /** An empty one in its place, in another format, if it still is to be. */
  async remake(
    address: RepositoryAddress,
    wanted: (reader: TableReader) => Promise<ObjectFormat>,
    isOther: (reader: TableReader) => Promise<boolean>,
  ): Promise<boolean> {
    const made = newId();
    return await this.#store.transact(async (tx) => {
      if (!(await isOther(tx))) return false;
      await removeList(tx, address, this.#clock.nowMs());
      return await makeList(tx, address, made, await wanted(tx));
    });
  }

  /** It has neither unclaimed data nor large files. Refs are asked for elsewhere. */
  async isEmpty(reader: TableReader, address: RepositoryAddress): Promise<boolean> {
    if ((await unclaimedPacks(reader, address)).length > 0) return false;
    return (await largeFileTotals(reader, address)).here === 0 && !(await hasUnclaimedFiles(reader, address));
  }

  remove(tx: Transaction, address: RepositoryAddress): Promise<void> {
    return removeList(tx, address, this.#clock.nowMs());
  }

  /** What plans for it rest on. Asked before its objects are looked at. */
  async basisOf(address: RepositoryAddress): Promise<PackBasis | undefined> {
    const list = await packList(this.#store, address);
    return list && { made: list.made, version: list.version };
  }

  /** Nothing went of what the plan rests on. */
  async rests(reader: TableReader, address: RepositoryAddress, basis: PackBasis | undefined): Promise<boolean> {
    return stillRests(basis, await packList(reader, address));
  }

  async bytes(address: RepositoryAddress): Promise<number> {
    return bytesOf(await listedPacks(this.#store, address));
  }

  /** Packs that the pack store has lost. */
  async lost(address: RepositoryAddress): Promise<readonly string[]> {
    return (await packList(this.#store, address))?.lost ?? [];
  }

  /** Nothing needs these any more. */
  async dropLost(address: RepositoryAddress, lost: readonly string[]): Promise<boolean> {
    return await this.#store.transact(async (tx) => {
      const list = await packList(tx, address);
      const gone = (await listedPacks(tx, address)).filter(({ name }) => lost.includes(name));
      if (!list || gone.length !== lost.length) return false;
      replacePacks(tx, list, gone, [], this.#clock.nowMs());
      return true;
    });
  }
}
