// The order of commits while machines write at the same time and are killed at every step of a commit: numbers are given
// once, nothing acknowledged is lost, and all machines end with the same events and rows.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { CommitStep } from "../../src/store/postgres/shared-order.js";
import { NodeProcess } from "./node-process.js";
import { TestPostgres } from "./postgres.js";
import { newFolders, newSchema, openNode } from "./three-nodes.js";

const rounds = Number(process.env.CLUSTER_ROUNDS ?? 3);
const names = ["a", "b", "c"] as const;
const steps: readonly CommitStep[] = ["locked", "appended", "committed", "applied"];

let postgres: TestPostgres;
const folders = newFolders();
const schema = newSchema();
const all: NodeProcess[] = [];

before(async () => {
  postgres = await TestPostgres.start();
});
after(async () => {
  for (const node of all) await node.kill();
  await postgres.dispose();
  folders.dispose();
});

async function start(name: string): Promise<NodeProcess> {
  const node = await NodeProcess.start({ url: postgres.url(), schema, folder: folders.folder(name), name });
  all.push(node);
  return node;
}

test("three machines that write at once and are killed at every step give each number once and lose nothing", {
  timeout: 600_000,
}, async () => {
  const nodes = new Map<string, NodeProcess>();
  await Promise.all(names.map(async (name) => nodes.set(name, await start(name))));
  for (let round = 0; round < rounds; round++) {
    for (const [index, step] of steps.entries()) {
      const victim = names[(round + index) % names.length] as string;
      const node = nodes.get(victim) as NodeProcess;
      const writing = [...nodes].map(([name, other]) => other.write(name === victim ? 200 : 25));
      // Somewhere in the middle of it.
      const begun = node.acknowledged.length;
      while (node.acknowledged.length < begun + 3 + round) await new Promise((resolve) => setImmediate(resolve));
      node.arm(step, "SIGKILL");
      await Promise.all(writing);
      assert.equal(node.hasEnded, true, `${victim} was to end when it had ${step}`);
      nodes.set(victim, await start(victim));
    }
  }
  const acknowledged = all.flatMap((node) => node.acknowledged);
  const refused = all.flatMap((node) => node.refused);
  assert.deepEqual(refused, []);
  const numbers = new Set(acknowledged.map(({ number }) => number));
  assert.equal(numbers.size, acknowledged.length, "a number was given twice");
  const facts = await Promise.all([...nodes.values()].map((node) => node.facts()));
  for (const fact of facts) assert.deepEqual({ ...fact, epoch: 0 }, { ...facts[0], epoch: 0 });
  // A row a number: the row of an acknowledged number names the event that was acknowledged with it.
  const reader = await openNode(postgres, { schema, folder: folders.folder("reader"), name: "reader" });
  try {
    for (const { number, id } of acknowledged) {
      assert.equal(await reader.store.row("audit", String(number)), id);
      assert.equal(await reader.store.has(id as never), true);
    }
    const last = (await reader.store.row<number>("meta", "count")) ?? 0;
    assert.equal(reader.store.stats.events, last);
    // Only the last work of a machine that was killed may be stored and not acknowledged.
    assert.ok(last - acknowledged.length <= rounds * steps.length, `${last} of ${acknowledged.length}`);
  } finally {
    await reader.close();
  }
  for (const node of nodes.values()) await node.end();
});
