// Convergence (goal P8): two whole servers in one process, 1,000 repositories with 50 roots each on the first, only the
// repositories on the second. How long until both hold the same events, and how long a live event takes from one
// store to the other. `node dist/bench/sync.js [repositories] [roots]`.

import { fileURLToPath } from "node:url";
import type { NostrEvent } from "../src/nostr/event.js";
import { keyOf } from "../test/harness/relay-events.js";
import {
  announce,
  issueFor,
  nowSeconds,
  put,
  type SyncServer,
  serveRepository,
  startSyncServer,
  until,
} from "../test/harness/sync-server.js";
import { type Benchmark, type BenchRow, milliseconds, percentile, perSecond } from "./rows.js";

const liveEvents = 300;
const livePauseMs = 10;
const waitMs = 600_000;

const settings = {
  NGIT_SYNC_BATCH_WINDOW_MS: "5000",
  NGIT_SYNC_MAX_EVENTS_PER_REPOSITORY_PER_DAY: "1000000",
  NGIT_SYNC_MAX_RELAYS_PER_OWNER: "1000",
};

/** Milliseconds from the first store's commit to the second's. */
async function liveLags(first: SyncServer, second: SyncServer, repository: NostrEvent): Promise<number[]> {
  const sent = new Map<string, number>();
  const lags: number[] = [];
  const stop = second.store.onCommit(({ entries }) => {
    for (const entry of entries) {
      const at = entry.type === "stored" ? sent.get(entry.event.id) : undefined;
      if (at !== undefined) lags.push(performance.now() - at);
    }
  });
  const author = keyOf("live");
  for (let index = 0; index < liveEvents; index++) {
    const event = issueFor(author, repository, `live ${index}`, { created_at: nowSeconds() });
    sent.set(event.id, performance.now());
    await put(first.store, event);
    await new Promise((go) => setTimeout(go, livePauseMs));
  }
  await until("all live events are there", () => lags.length === liveEvents, waitMs);
  stop();
  return lags;
}

export async function run(repositories = 1_000, roots = 50): Promise<BenchRow[]> {
  const first = await startSyncServer({ settings });
  const second = await startSyncServer({ settings });
  try {
    const authors = Array.from({ length: 50 }, (_, index) => keyOf(`author ${index}`));
    const authorAt = (index: number) => authors[index % authors.length] as (typeof authors)[number];
    const announced = Array.from({ length: repositories }, (_, index) =>
      announce(authorAt(index), [first.domain, second.domain], { identifier: `repo-${index}` }),
    );
    const start = nowSeconds() - 1_000_000;
    for (const [index, repository] of announced.entries()) {
      await serveRepository(first.store, repository);
      const issues = Array.from({ length: roots }, (_, root) =>
        issueFor(authorAt(index + root), repository, `issue ${root}`, { created_at: start + index * roots + root }),
      );
      await put(first.store, ...issues);
    }
    const wanted = repositories * (roots + 1);
    const startedMs = performance.now();
    for (const repository of announced) await serveRepository(second.store, repository);
    await until("both hold the same events", () => second.store.stats.events === wanted, waitMs);
    const tookMs = performance.now() - startedMs;
    await until("the link is live", async () => (await second.status()).relays[0]?.state === "live", waitMs);
    const liveMs = performance.now() - startedMs;
    const lags = await liveLags(first, second, announced[0] as NostrEvent);
    const p99Ms = percentile(lags, 0.99);
    return [
      {
        goal: "P8",
        work: `convergence, ${repositories} repositories x ${roots} roots`,
        measured: `${(tookMs / 1_000).toFixed(1)} s (${perSecond(wanted, tookMs)}), all confirmed after ${(liveMs / 1_000).toFixed(1)} s`,
        target: "< 60 s",
        met: tookMs < 60_000,
      },
      {
        goal: "P8",
        work: "live event on the second server",
        measured: `p50 ${milliseconds(percentile(lags, 0.5))}, p99 ${milliseconds(p99Ms)}`,
        target: "p99 < 250 ms",
        met: p99Ms < 250,
      },
    ];
  } finally {
    await second.close();
    await first.close();
  }
}

export const sync: Benchmark = { name: "sync", run: () => run() };

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [repositories = 1_000, roots = 50] = process.argv.slice(2).map(Number);
  process.stdout.write(`${JSON.stringify(await run(repositories, roots), null, 2)}\n`);
  process.exit(0);
}
