// Metrics of the process as a whole: version, age, engine, Node's own numbers, how many repositories are served, and what
// waits for its turn. Every queue is bounded; its length shows how near to its bound it is.

import { collectDefaultMetrics, Gauge, type Registry } from "prom-client";
import { isReleased } from "./catalogue/repositories.js";
import { RowTally } from "./catalogue/row-tally.js";
import type { Context } from "./context.js";

export function watchProcess(
  { registry, clock, version }: Context,
  commit: string,
  engine: string,
  repositories: () => Promise<number>,
): void {
  const registers = [registry];
  const startedMs = clock.monotonicMs();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "ngit_build_info",
    help: "Which program this is",
    labelNames: ["version", "commit"],
    registers,
  }).set({ version, commit }, 1);
  new Gauge({
    name: "ngit_verification_engine_info",
    help: "What checks signatures",
    labelNames: ["engine"],
    registers,
  }).set({ engine }, 1);
  new Gauge({
    name: "ngit_uptime_seconds",
    help: "Time since the start",
    registers,
    collect() {
      this.set((clock.monotonicMs() - startedMs) / 1_000);
    },
  });
  new Gauge({
    name: "ngit_repositories_total",
    help: "Repositories served here",
    registers,
    async collect() {
      this.set(await repositories());
    },
  });
}

export function measureQueues({ registry }: Context, lengths: Readonly<Record<string, () => number>>): void {
  new Gauge({
    name: "ngit_queue_length",
    help: "Works that wait for their turn, by queue",
    labelNames: ["queue"],
    registers: [registry],
    collect() {
      for (const [queue, length] of Object.entries(lengths)) this.set({ queue }, length());
    },
  });
}

/** How many repositories are served. */
export function repositoryCounter({ store }: Context): () => Promise<number> {
  const tally = new RowTally(store, (row) => (row.area !== "prs" && isReleased(row) ? 1 : 0));
  let known = 0;
  return async () => {
    // A store that cannot be read is told of elsewhere: numbers and pages go on with what was known.
    known = await tally.total().catch(() => known);
    return known;
  };
}

/** A room that may be closed and started again takes its metrics along: they would be registered twice. */
export async function withOwnMetrics(
  registry: Registry,
  start: () => Promise<{ close(): Promise<void> }>,
): Promise<{ close(): Promise<void> }> {
  const before = new Set(registry.getMetricsAsArray().map(({ name }) => name));
  const room = await start();
  const own = registry.getMetricsAsArray().flatMap(({ name }) => (before.has(name) ? [] : [name]));
  return {
    async close() {
      await room.close();
      for (const name of own) registry.removeSingleMetric(name);
    },
  };
}
