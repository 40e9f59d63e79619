// The store's contract, and random histories, on three machines with one PostgreSQL.

import { after, before, test } from "node:test";
import type { Clock } from "../../src/base/clock.js";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { storeContract } from "../../src/store/testing/contract.js";
import { fuzzStore } from "../../src/store/testing/fuzz.js";
import { TestPostgres } from "./postgres.js";
import { type Folders, newFolders, newSchema, openNode, ThreeNodes } from "./three-nodes.js";

let postgres: TestPostgres;
before(async () => {
  postgres = await TestPostgres.start();
});
after(() => postgres.dispose());

interface Opening {
  readonly clock: Clock;
  readonly maxQueuedWorks?: number;
}

async function openThree({ clock, maxQueuedWorks }: Opening, schema: string, folders: Folders): Promise<ThreeNodes> {
  const options = {
    schema,
    timeFrom: () => clock,
    indexAtRows: 7,
    ...(maxQueuedWorks !== undefined && { maxQueuedWorks }),
  };
  return new ThreeNodes(
    await Promise.all(
      ["a", "b", "c"].map((name) => openNode(postgres, { ...options, name, folder: folders.folder(name) })),
    ),
  );
}

storeContract("three nodes on PostgreSQL", async (options) => {
  const folders = newFolders();
  const schema = newSchema();
  return {
    store: await openThree(options, schema, folders),
    dispose: async () => {
      folders.dispose();
      await postgres.sql(`DROP SCHEMA ${schema} CASCADE`);
    },
  };
});

const seed = Number(process.env.HOLDFAST_FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31));

test(`three nodes answer like the naive store, over works that go to one after the other and restarts (seed ${seed})`, async () => {
  const folders = newFolders();
  const clock = new ManualClock();
  let schema = "";
  const openAt = (): Promise<ThreeNodes> =>
    openThree({ clock }, schema, { ...folders, folder: (name) => folders.folder(`${schema} ${name}`) });
  try {
    await fuzzStore({
      seed,
      cases: 600,
      clock,
      open: () => {
        schema = newSchema();
        return openAt();
      },
      reopen: async (store) => {
        await store.close();
        return openAt();
      },
    });
  } finally {
    folders.dispose();
  }
});
