// What somebody waits for while others send a batch: the OK of an event, its arrival on another machine, a push.

import { setTimeout as pause } from "node:timers/promises";
import { batchOf, listenersOf, slowestGoal, Teller } from "./cluster-events.js";
import { type Author, authorsOf } from "./cluster-git.js";
import { type Side, type Sides, type Stage, tell } from "./cluster-ground.js";
import { scaled, timesRow } from "./cluster-rows.js";
import type { BenchRow } from "./rows.js";

/** Events that others send: at a rate that leaves room, and as many as are answered. */
const batches = [
  { words: "500 events a second", count: scaled(7_500), perSecond: 500 },
  { words: "a batch, 50 sockets × 20", count: scaled(20_000) },
] as const;
/** More than there is time for. */
const single = scaled(2_000);
const paceMs = 20;

export const batchEventsNeeded = batches.reduce((sum, { count }) => sum + count + single, 0);

interface Waited {
  readonly okMs: number[];
  readonly liveMs: number[];
  readonly pushMs: number[];
}

/** As long as the batch lasts: events one at a time to one machine, and pushes one at a time, each to the next. */
async function besideBatch(
  stage: Stage,
  side: Side,
  author: Author,
  batch: { readonly skip: number; readonly count: number; readonly perSecond?: number },
  lines: readonly string[],
): Promise<Waited> {
  let isOver = false;
  const waited: Waited = { okMs: [], liveMs: [], pushMs: [] };
  const listeners = await listenersOf(side);
  const teller = await Teller.connect(side.ports.slice(0, 1));
  const talk = async (): Promise<void> => {
    for (const raw of lines) {
      if (isOver) return;
      const sentMs = performance.now();
      const heard = Promise.all(listeners.map((listener) => listener.hears(raw, sentMs)));
      waited.okMs.push(await teller.tell(raw));
      waited.liveMs.push(...(await heard));
      await pause(paceMs);
    }
  };
  const push = async (): Promise<void> => {
    for (let turn = 0; !isOver; turn++) waited.pushMs.push((await author.push(turn, turn)).pushMs);
  };
  const sending = batchOf(stage, side.ports, batch).finally(() => {
    isOver = true;
  });
  await Promise.all([sending, talk(), push()]);
  for (const { client } of listeners) client.close();
  teller.close();
  return waited;
}

export async function batchRows(stage: Stage): Promise<BenchRow[]> {
  const { sides, issues } = stage;
  const authors = await authorsOf(stage, "batch");
  const rows: BenchRow[] = [];
  for (const { words, ...batch } of batches) {
    tell(`events and pushes beside ${words}`);
    const { skip } = issues.take(batch.count);
    const { lines } = issues.take(single);
    const alone = await besideBatch(stage, sides.alone, authors.alone, { ...batch, skip }, lines);
    const together = await besideBatch(stage, sides.together, authors.together, { ...batch, skip }, lines);
    const both = (name: keyof Waited): Sides<readonly number[]> => ({ alone: alone[name], together: together[name] });
    rows.push(
      timesRow(`beside ${words}: one event, to its OK`, both("okMs")),
      timesRow("  live on the others", both("liveMs"), slowestGoal(together.liveMs)),
      timesRow("  git push of one commit", both("pushMs")),
    );
  }
  authors.alone.close();
  authors.together.close();
  return rows;
}
