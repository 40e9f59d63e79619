// Housekeeping in this server: settings, metrics and log lines around git/housekeeping-scheduler.ts.

import { Counter, Histogram, type Registry } from "prom-client";
import type { Clock } from "../base/clock.js";
import { gaugeOf } from "../base/gauge.js";
import { repositoryAddress } from "../catalogue/repositories.js";
import type { Logger } from "../config/logging.js";
import type { Context } from "../context.js";
import type { Disks } from "../store/disk-space.js";
import type { GitHost } from "./git-host.js";
import { type HousekeepingReport, HousekeepingScheduler } from "./housekeeping-scheduler.js";

export async function startHousekeeping(
  { live, logger, clock, store, registry }: Context,
  gitHost: GitHost,
  disks: Disks,
): Promise<HousekeepingScheduler> {
  const metrics = createHousekeepingMetrics(registry, clock, () => scheduler.queued);
  const behind = "Repositories whose ref files do not say yet what their rows say; they are not repacked meanwhile";
  gaugeOf(registry, "ngit_git_refs_behind", behind, () => gitHost.repositories.countBehind);
  const scheduler = new HousekeepingScheduler({
    store,
    repositories: gitHost.repositories,
    clock,
    config: () => live.current,
    freeBytes: () => disks.gitFreeBytes,
    ran(report) {
      metrics.ran(report);
      logReport(logger, report);
    },
    failed: (error) => logger.error({ err: error }, "housekeeping could not look at a repository"),
  });
  await scheduler.open();
  return scheduler;
}

function logReport(logger: Logger, report: HousekeepingReport): void {
  const { kind, result, address, before, after, error } = report;
  const facts = {
    repo: repositoryAddress(address),
    kind,
    result,
    ms: Math.round(report.seconds * 1_000),
    packs: `${before.packs} → ${after.packs}`,
    bytes: `${before.bytes} → ${after.bytes}`,
  };
  if (result === "failed") logger.warn({ ...facts, err: error }, "housekeeping failed; it is tried again later");
  else if (result === "done") logger.info(facts, "housekeeping");
  else logger.debug(facts, "housekeeping gave way");
}

function createHousekeepingMetrics(registry: Registry, clock: Clock, queued: () => number) {
  const registers = [registry];
  let lastSuccessMs = clock.monotonicMs();
  const runs = new Counter({
    name: "ngit_git_housekeeping_runs_total",
    help: "Housekeeping of repositories, by kind and how it ended",
    labelNames: ["kind", "result"],
    registers,
  });
  const duration = new Histogram({
    name: "ngit_git_housekeeping_duration_seconds",
    help: "How long housekeeping of one repository took",
    labelNames: ["kind"],
    buckets: [0.1, 0.5, 2, 10, 60, 300, 1_800],
    registers,
  });
  const packs = new Counter({
    name: "ngit_git_housekeeping_packs_joined_total",
    help: "Packs that housekeeping saved by joining them",
    registers,
  });
  const bytes = new Counter({
    name: "ngit_git_housekeeping_freed_bytes_total",
    help: "Bytes of packs that housekeeping freed",
    registers,
  });
  const gauge = (name: string, help: string, read: () => number): void => gaugeOf(registry, name, help, read);
  gauge("ngit_git_housekeeping_queue", "Repositories that changed and wait for a look", queued);
  gauge(
    "ngit_git_housekeeping_last_success_age_seconds",
    "Time since housekeeping last ended well, or since the start",
    () => (clock.monotonicMs() - lastSuccessMs) / 1_000,
  );
  for (const kind of ["geometric", "cruft"]) {
    for (const result of ["done", "busy", "interrupted", "failed"]) runs.inc({ kind, result }, 0);
  }
  return {
    ran({ kind, result, seconds, before, after }: HousekeepingReport): void {
      runs.inc({ kind, result });
      if (result === "busy") return;
      duration.observe({ kind }, seconds);
      packs.inc(Math.max(0, before.packs - after.packs));
      bytes.inc(Math.max(0, before.bytes - after.bytes));
      if (result === "done") lastSuccessMs = clock.monotonicMs();
    },
  };
}
