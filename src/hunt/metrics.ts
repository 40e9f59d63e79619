// The hunt's numbers (purgatory.md, "Metrics and logs"). Names of domains come from the core, which lets a hundred of
// them have a label of their own.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { CounterName, GaugeName, HuntCommand } from "./core/messages.js";

export interface HuntMetrics {
  count(command: Extract<HuntCommand, { type: "count" }>): void;
  gauge(command: Extract<HuntCommand, { type: "gauge" }>): void;
  fetched(bytes: number, seconds: number): void;
}

export function createHuntMetrics(registry: Registry): HuntMetrics {
  const registers = [registry];
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers });
  const gauge = (name: string, help: string, labelNames: string[]) => new Gauge({ name, help, labelNames, registers });
  const counters: Readonly<Record<CounterName, Counter>> = {
    purgatory_sync_attempts_total: counter("purgatory_sync_attempts_total", "Hunts by how they ended", ["result"]),
    purgatory_sync_oids_fetched_total: counter("purgatory_sync_oids_fetched_total", "Wanted objects that came", []),
    purgatory_domain_requests_total: counter("purgatory_domain_requests_total", "Connections to git hosts", [
      "domain",
      "result",
    ]),
  };
  const gauges: Readonly<Record<GaugeName, Gauge>> = {
    purgatory_sync_queue_size: gauge("purgatory_sync_queue_size", "Repositories and pull requests being hunted", []),
    purgatory_domain_in_flight: gauge("purgatory_domain_in_flight", "Fetches running at a git host", ["domain"]),
    purgatory_domain_queued: gauge("purgatory_domain_queued", "Hunts that wait for their turn at a git host", [
      "domain",
    ]),
  };
  const bytes = counter("ngit_git_fetch_bytes_total", "Bytes fetched from other git servers", []);
  const seconds = new Histogram({
    name: "ngit_git_fetch_seconds",
    help: "How long fetches from other git servers took",
    buckets: [0.05, 0.2, 1, 5, 20, 60, 300, 600],
    registers,
  });
  return {
    count: ({ metric, labels, by }) => counters[metric].inc(labels, by),
    gauge: ({ metric, labels, value }) => gauges[metric].set(labels, value),
    fetched(fetchedBytes, tookSeconds) {
      bytes.inc(fetchedBytes);
      seconds.observe(tookSeconds);
    },
  };
}
