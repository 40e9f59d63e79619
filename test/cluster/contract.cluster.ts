// The store's contract, and the one of its random histories, on three machines with one PostgreSQL.

import { after, before } from "node:test";
import { storeContract } from "../../src/store/testing/contract.js";
import { TestPostgres } from "./postgres.js";
import { newFolders, newSchema, openNode, ThreeNodes } from "./three-nodes.js";

let postgres: TestPostgres;
before(async () => {
  postgres = await TestPostgres.start();
});
after(() => postgres.dispose());

storeContract("three nodes on PostgreSQL", async ({ clock, maxQueuedWorks }) => {
  const folders = newFolders();
  const schema = newSchema();
  const options = {
    schema,
    storeClock: clock,
    indexAtRows: 7,
    ...(maxQueuedWorks !== undefined && { maxQueuedWorks }),
  };
  const nodes = await Promise.all(
    ["a", "b", "c"].map((name) => openNode(postgres, { ...options, name, folder: folders.folder(name) })),
  );
  return {
    store: new ThreeNodes(nodes),
    dispose: async () => {
      folders.dispose();
      await postgres.sql(`DROP SCHEMA ${schema} CASCADE`);
    },
  };
});
