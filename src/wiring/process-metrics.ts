// What this process is: version, age, engine, and Node's own numbers.

import { collectDefaultMetrics, Gauge, type Registry } from "prom-client";
import type { Clock } from "../base/clock.js";

export interface ProcessFacts {
  readonly registry: Registry;
  readonly build: { readonly version: string; readonly commit: string };
  readonly engine: string;
  readonly clock: Clock;
  readonly repositories: () => Promise<number>;
}

export function watchProcess({ registry, build, engine, clock, repositories }: ProcessFacts): void {
  const registers = [registry];
  const startedMs = clock.monotonicMs();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: "ngit_build_info",
    help: "Which program this is",
    labelNames: ["version", "commit"],
    registers,
  }).set({ version: build.version, commit: build.commit }, 1);
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
