// Three machines behind one face, as a load balancer shows them: works go to one machine after the other, questions to the
// next one, which first looks for what is new. The store's contract must hold for it as for one store.

import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.js";
import type {
  Commit,
  FeedEntry,
  FeedSubscription,
  QueryOptions,
  Reader,
  RowRange,
  Sequence,
  Store,
  StoredRow,
  StoreStats,
  TableName,
  Transaction,
  TransactOptions,
} from "../../src/store/port.js";
import { type ClusterStore, type ClusterStoreParts, openClusterStore } from "../../src/store/postgres/open.js";
import type { TestPostgres } from "./postgres.js";

export const serverKey = "ab".repeat(32);
export const newSchema = (): string => `t${randomUUID().replaceAll("-", "")}`;

export type NodeOptions = Partial<ClusterStoreParts> & { readonly schema: string; readonly folder: string };

export const openNode = (postgres: Pick<TestPostgres, "url">, options: NodeOptions): Promise<ClusterStore> =>
  openClusterStore({
    url: postgres.url(),
    clock: systemClock,
    serverKey,
    name: "node",
    version: "0.0.0",
    fault: (error) => {
      throw error;
    },
    ...options,
  });

/** Folders of machines that go with the test. */
export interface Folders {
  folder(name: string): string;
  dispose(): void;
}

export function newFolders(): Folders {
  const root = mkdtempSync(join(tmpdir(), "holdfast-nodes-"));
  return {
    folder: (name) => join(root, name),
    dispose: () => rmSync(root, { recursive: true, force: true, maxRetries: 5 }),
  };
}

export class ThreeNodes implements Store {
  #turn = 0;
  #underWay = 0;

  constructor(readonly nodes: readonly ClusterStore[]) {}

  get #stores(): readonly Store[] {
    return this.nodes.map(({ store }) => store);
  }

  get #current(): Store {
    return this.#stores[this.#turn % this.nodes.length] as Store;
  }

  /** The next machine, up to date. */
  async #next(): Promise<Store> {
    const store = this.#stores[(this.#turn + 1) % this.nodes.length] as Store;
    await store.upToDate();
    return store;
  }

  get position(): Sequence {
    return Math.max(...this.#stores.map(({ position }) => position));
  }

  get stats(): StoreStats {
    const newest = this.#stores.find(({ position }) => position === this.position) as Store;
    return newest.stats;
  }

  get isShared(): boolean {
    return true;
  }

  /** Works that are handed over together stay together; the next ones go to the next machine. */
  async transact<T>(work: (tx: Transaction) => Promise<T>, options?: TransactOptions): Promise<T> {
    if (this.#underWay === 0) this.#turn += 1;
    this.#underWay += 1;
    try {
      return await this.#current.transact(work, options);
    } finally {
      this.#underWay -= 1;
    }
  }

  async event(id: Parameters<Reader["event"]>[0]): ReturnType<Reader["event"]> {
    return (await this.#next()).event(id);
  }

  async has(id: Parameters<Reader["has"]>[0]): Promise<boolean> {
    return (await this.#next()).has(id);
  }

  async latest(address: Parameters<Reader["latest"]>[0]): ReturnType<Reader["latest"]> {
    return (await this.#next()).latest(address);
  }

  async *query(filters: Parameters<Reader["query"]>[0], options?: QueryOptions): AsyncGenerator<readonly StoredRow[]> {
    yield* (await this.#next()).query(filters, options);
  }

  queryAtOnce(filters: Parameters<Reader["query"]>[0], options: QueryOptions): AsyncGenerator<readonly StoredRow[]> {
    return this.query(filters, options);
  }

  async count(filters: Parameters<Reader["count"]>[0]): Promise<number> {
    return (await this.#next()).count(filters);
  }

  async deletionOf(event: Parameters<Reader["deletionOf"]>[0]): ReturnType<Reader["deletionOf"]> {
    return (await this.#next()).deletionOf(event);
  }

  async row<T>(table: TableName, key: string): Promise<T | undefined> {
    return (await this.#next()).row<T>(table, key);
  }

  async *rows<T>(table: TableName, range?: RowRange): AsyncGenerator<readonly [string, T]> {
    yield* (await this.#next()).rows<T>(table, range);
  }

  feed(after: Sequence, signal: AbortSignal): FeedSubscription {
    const [store] = this.#stores as [Store];
    const pages = async function* (): AsyncGenerator<readonly FeedEntry[]> {
      await store.upToDate();
      for await (const page of store.feed(after, signal)) yield page;
    };
    return { [Symbol.asyncIterator]: pages };
  }

  /** Each commit is heard once: from the machine that made it. */
  onCommit(listener: (commit: Commit) => void): () => void {
    const stops = this.#stores.map((store) =>
      store.onCommit((commit) => {
        if (!commit.isForeign) listener(commit);
      }),
    );
    return () => {
      for (const stop of stops) stop();
    };
  }

  onForeignCommit(follow: (commit: Commit) => Promise<void> | undefined): () => void {
    const stops = this.#stores.map((store) => store.onForeignCommit(follow));
    return () => {
      for (const stop of stops) stop();
    };
  }

  upToDate(): Promise<void> {
    return Promise.all(this.#stores.map((store) => store.upToDate())).then(() => undefined);
  }

  async timedIds(...args: Parameters<Store["timedIds"]>): ReturnType<Store["timedIds"]> {
    return (await this.#next()).timedIds(...args);
  }

  async sweepExpired(...args: Parameters<Store["sweepExpired"]>): Promise<number> {
    return (await this.#next()).sweepExpired(...args);
  }

  async isWritable(): Promise<boolean> {
    return (await Promise.all(this.#stores.map((store) => store.isWritable()))).every(Boolean);
  }

  async snapshot(...args: Parameters<Store["snapshot"]>): Promise<number> {
    return (await this.#next()).snapshot(...args);
  }

  async compact(): Promise<void> {
    await Promise.all(this.#stores.map((store) => store.compact()));
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.close()));
  }
}
