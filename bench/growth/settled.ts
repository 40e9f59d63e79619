// When a server is at rest, and what a piece of work costs it: measured over the server and everything it starts.

import { treeMs } from "../process-costs.js";
import type { BenchServer } from "../processes.js";

type Observed = Pick<BenchServer, "pid" | "port">;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const lookMs = 500;
const restMs = 15;
const quietLooks = 3;

/** It has used next to nothing for a while. */
export async function atRest({ pid }: Observed, atMostMs = 300_000): Promise<void> {
  const endMs = performance.now() + atMostMs;
  let before = treeMs(pid);
  for (let quiet = 0; quiet < quietLooks; ) {
    if (performance.now() > endMs) throw new Error("the server does not come to rest");
    await pause(lookMs);
    const now = treeMs(pid);
    quiet = now - before <= restMs ? quiet + 1 : 0;
    before = now;
  }
}

/** Refs are synced a second after a push, and what it brought is searched for large files after five. */
const followUpMs = 6_000;

/** Processor time until the work is done, or until what follows from it is done too. */
export async function costMs(server: Observed, work: () => Promise<unknown>, withFollowUp = false): Promise<number> {
  const beforeMs = treeMs(server.pid);
  await work();
  if (withFollowUp) {
    await pause(followUpMs);
    await atRest(server);
  }
  return treeMs(server.pid) - beforeMs;
}

/** Kept answers are a second old at most: this is the cost of one that is made, when what it rests on was read before. */
export async function pageMs(server: Observed, path: string, count: number): Promise<number> {
  const ask = async (): Promise<void> => {
    const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text.slice(0, 200)}`);
  };
  await ask();
  let sum = 0;
  for (let asked = 0; asked < count; asked++) {
    await pause(1_100);
    sum += await costMs(server, ask);
  }
  return sum / count;
}

export async function metricOf({ port }: Observed, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
}
