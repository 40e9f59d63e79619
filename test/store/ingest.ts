// Ingests events into a store until it is killed, and prints the id of each one when it is acknowledged.

import { openLmdbStore } from "../../src/store/lmdb/open.js";
import { eventOf, pubkeyOf } from "../../src/store/testing/events.js";
import { Random } from "../../src/store/testing/random.js";

const [folder = "", seed = "1"] = process.argv.slice(2);
const random = new Random(Number(seed));
const store = await openLmdbStore(folder, { indexAtRows: 60, reserveBytes: 0 });
process.stdout.write("ready\n");
const mine: { id: string; author: number }[] = [];

async function ingest(): Promise<void> {
  for (let count = 0; ; count++) {
    const author = random.below(10);
    const target = random.chance(0.1) ? mine[random.below(mine.length)] : undefined;
    const event = target
      ? eventOf({ author: target.author, kind: 5, at: random.below(1_000), tags: [["e", target.id]] })
      : eventOf({
          author,
          kind: random.pick([1, 1621, 30_617, 10_002]),
          at: random.below(1_000),
          tags: [
            ["d", `${random.below(200)}`],
            ["t", `topic-${random.below(20)}`],
            ["p", pubkeyOf(random.below(10))],
            ["name", "some words"],
          ],
          content: `${seed} ${count} ${random.next()}`,
        });
    const result = await store.transact(async (tx) => {
      tx.setRow("meta", `last-${event.id}`, event.created_at);
      return tx.put(event);
    });
    if (!result.stored) continue;
    if (!target) mine.push({ id: event.id, author });
    process.stdout.write(`${event.id}\n`);
  }
}

await Promise.all(Array.from({ length: 40 }, ingest));
