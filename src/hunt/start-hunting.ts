// The hunt for missing git data and the repair of what is here, from settings as operators name them; and the hunt's
// numbers (purgatory.md, "Metrics and logs").

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Context } from "../context.js";
import type { GitHost } from "../git/git-host.js";
import { reachOf } from "../net/address.js";
import { guardWith, type Resolve, systemResolver } from "../net/guard.js";
import type { Purgatory } from "../purgatory/purgatory.js";
import { type CounterName, type GaugeName, type HuntConfig, huntConstants } from "./core/messages.js";
import { PlainHosts } from "./fetch-server.js";
import { Hunting, type Measured } from "./hunting.js";
import { Repair } from "./repair.js";

interface UsedRooms {
  readonly gitHost: Pick<GitHost, "git" | "launcher" | "repositories">;
  readonly purgatory: Purgatory;
  /** Instead of the system's; for tests. */
  readonly resolve?: Resolve;
  /** Instead of what the settings say; for tests. */
  readonly huntConfig?: (config: HuntConfig) => HuntConfig;
}

export interface HuntingRoom {
  readonly hunting: Hunting;
  readonly repair: Repair;
  close(): Promise<void>;
}

export async function startHunting(context: Context, parts: UsedRooms): Promise<HuntingRoom> {
  const { live, logger, clock, store, services, registry, onFault } = context;
  const { purgatory } = parts;
  const { repositories, git, launcher } = parts.gitHost;
  const fromSettings = (): HuntConfig => {
    const settings = { ...live.current, ...huntConstants, ours: services };
    return parts.huntConfig?.(settings) ?? settings;
  };
  const config = fromSettings();
  // The core reads its numbers when it needs them, in the object it was given.
  const stopListening = live.onChange(() => Object.assign(config, fromSettings()));
  const { measure, fetched } = createMetrics(registry);
  const guard = guardWith({ resolve: parts.resolve ?? systemResolver(clock), reach: reachOf(live.current) });
  const hunting: Hunting = new Hunting({
    store,
    repositories,
    purgatory,
    clock,
    config,
    measure,
    logger,
    onFault,
    repaired: (name) => void repair.check(name).catch(onFault),
    server: {
      git,
      clock,
      guard,
      plainHosts: new PlainHosts(clock),
      config,
      scratchRoot: launcher.scratchDirectory,
      fetched,
    },
  });
  const repair: Repair = new Repair({
    store,
    repositories,
    purgatory,
    clock,
    intervalMs: () => live.current.gitRepairIntervalHours * 3_600_000,
    found: (name, found) => hunting.found(name, found),
    logger,
    onFault,
  });
  await hunting.open();
  repair.open();
  return {
    hunting,
    repair,
    async close() {
      stopListening();
      await repair.close();
      await hunting.close();
    },
  };
}

/** The hunt's numbers. Names of domains come from the core, which lets a hundred of them have a label of their own. */
function createMetrics(registry: Registry) {
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
    measure(command: Measured): void {
      if (command.type === "count") counters[command.metric].inc(command.labels, command.by);
      else gauges[command.metric].set(command.labels, command.value);
    },
    fetched(fetchedBytes: number, tookSeconds: number): void {
      bytes.inc(fetchedBytes);
      seconds.observe(tookSeconds);
    },
  };
}
