// Several machines in one process, for tests of what they share: one store in memory, which each sees as its own and whose
// commits the others follow, and one pack store in a folder. A real log behind it is tested in test/cluster.

import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "../../base/clock.js";
import { KeyedLock } from "../../base/keyed-lock.js";
import { DirectoryPackStore } from "../../packs/directory.js";
import { createMemoryStore } from "../../store/memory/memory-store.js";
import {
  type Commit,
  isLocalRow,
  type RowRange,
  type Store,
  type TableName,
  type Transaction,
  type TransactOptions,
} from "../../store/port.js";
import { Launcher } from "../launcher.js";
import { Repositories } from "../repositories.js";
import { Git } from "../run.js";
import { sharing } from "../share-packs.js";

export interface Machine {
  readonly name: string;
  readonly store: Store;
  readonly repositories: Repositories;
  readonly gitDataPath: string;
  leads: boolean;
}

export interface Machines {
  readonly git: Git;
  readonly folder: string;
  readonly packFolder: string;
  readonly packs: DirectoryPackStore;
  /** One that is alone, for objects to copy from. */
  readonly source: Repositories;
  machine(name: string): Machine;
  close(): Promise<void>;
}

export async function startMachines(clock: Clock = systemClock): Promise<Machines> {
  const folder = await mkdtemp(join(tmpdir(), "holdfast-machines-"));
  const packFolder = join(folder, "packs");
  await mkdir(packFolder);
  const packs = new DirectoryPackStore(packFolder);
  await packs.setMark({ cluster: randomUUID(), token: randomUUID() });
  const launcher = new Launcher();
  const git = await Git.find(launcher);
  const shared = createMemoryStore({ clock });
  const order = new SharedOrder(shared);
  const all: Machine[] = [];
  const alone = createMemoryStore({ clock });
  return {
    ...{ git, folder, packFolder, packs },
    source: new Repositories({ gitDataPath: join(folder, "source"), git, clock, store: alone }),
    machine(name) {
      const store = order.seenBy(name);
      const gitDataPath = join(folder, name);
      const state = { leads: all.length === 0 };
      const share = sharing({ packs, store, clock, leads: () => machine.leads });
      const repositories = new Repositories({ gitDataPath, git, clock, store, share });
      const machine: Machine = { name, store, repositories, gitDataPath, ...state };
      all.push(machine);
      return machine;
    },
    async close() {
      for (const { repositories } of all) await repositories.close();
      await launcher.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Local rows have the machine's name before them. */
class SharedOrder {
  /** A store joins works that wait into one commit, and a commit is one machine's. */
  readonly #turns = new KeyedLock();
  readonly #followers = new Map<string, Set<(commit: Commit) => Promise<void> | undefined>>();
  #writer = "";

  constructor(private readonly store: Store) {
    store.onCommit((commit) => {
      for (const [name, followers] of this.#followers) {
        if (name === this.#writer) continue;
        for (const follow of followers)
          void follow({ ...commit, changedKeys: (table) => commit.changedKeys(table), isForeign: true });
      }
    });
  }

  seenBy(name: string): Store {
    const keyOf = (table: string, key: string): string => (isLocalRow(table, key) ? `${name}/${key}` : key);
    const rowsOf = (reader: Pick<Store, "rows">) =>
      async function* <T>(table: TableName, range: RowRange = {}): AsyncIterable<readonly [string, T]> {
        if (table !== "aligned") return yield* reader.rows<T>(table, range);
        for await (const [key, value] of reader.rows<T>(table, { ...range, prefix: `${name}/${range.prefix ?? ""}` }))
          yield [key.slice(name.length + 1), value] as const;
      };
    const followers = new Set<(commit: Commit) => Promise<void> | undefined>();
    this.#followers.set(name, followers);
    const overrides = {
      row: <T>(table: TableName, key: string) => this.store.row<T>(table, keyOf(table, key)),
      rows: rowsOf(this.store),
      onForeignCommit: (follow: (commit: Commit) => Promise<void> | undefined) => {
        followers.add(follow);
        return () => followers.delete(follow);
      },
      transact: <T>(work: (tx: Transaction) => Promise<T>, options?: TransactOptions): Promise<T> =>
        this.#turns.run("", () => {
          this.#writer = name;
          return this.store.transact(
            (tx) =>
              work(
                proxyOf(tx, {
                  row: (table: TableName, key: string) => tx.row(table, keyOf(table, key)),
                  rows: rowsOf(tx as unknown as Store),
                  setRow: (table: TableName, key: string, value: unknown) => tx.setRow(table, keyOf(table, key), value),
                  deleteRow: (table: TableName, key: string) => tx.deleteRow(table, keyOf(table, key)),
                }),
              ),
            options,
          );
        }),
    };
    return proxyOf(this.store, overrides);
  }
}

function proxyOf<T extends object>(target: T, overrides: object): T {
  return new Proxy(target, {
    get(of, property) {
      if (property in overrides) return (overrides as Record<string | symbol, unknown>)[property];
      const value = Reflect.get(of, property, of) as unknown;
      return typeof value === "function" ? value.bind(of) : value;
    },
  });
}
