// The git room's numbers (configuration.md, "Metrics"), and its line in the log. One push counts once; a refused push is not a success.
// Labels are operations, outcomes, codes, and the addresses of the busiest repositories; never text a stranger chose
// beyond those.

import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { Logger } from "../config/logging.js";
import type { GitOperation } from "./http-types.js";

const maxRepositoriesCounted = 10_000;

export interface GitMetrics {
  observe(operation: GitOperation): void;
  /** How long the event loop stood still to start a process. */
  started(stallMs: number): void;
}

export function createGitMetrics(registry: Registry, topRepositories: () => number): GitMetrics {
  const registers = [registry];
  const operations = new Counter({
    name: "ngit_git_operations_total",
    help: "Git operations by outcome",
    labelNames: ["operation", "status"],
    registers,
  });
  const duration = new Histogram({
    name: "ngit_git_operation_duration_seconds",
    help: "How long git operations took",
    labelNames: ["operation"],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300, 1800],
    registers,
  });
  const bytes = new Counter({
    name: "ngit_git_bytes_total",
    help: "Bytes of git requests and answers",
    labelNames: ["direction"],
    registers,
  });
  const authorization = new Counter({
    name: "ngit_git_push_authorization_total",
    help: "Pushes by what was decided about them",
    labelNames: ["result"],
    registers,
  });
  const stall = new Histogram({
    name: "ngit_git_process_start_stall_seconds",
    help: "Time of the event loop spent on starting a git process",
    buckets: [0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1],
    registers,
  });
  const traffic = new Map<string, number>();
  new Gauge({
    name: "ngit_git_top_repos_bytes",
    help: "Bytes served and received by the busiest repositories since the start",
    labelNames: ["repo"],
    registers,
    collect() {
      this.reset();
      const busiest = [...traffic].sort((a, b) => b[1] - a[1]).slice(0, topRepositories());
      for (const [repo, total] of busiest) this.set({ repo }, total);
    },
  });

  return {
    observe(done) {
      const operation = done.operation === "advertise" || done.operation === "ls-refs" ? "refs" : done.operation;
      operations.inc({ operation, status: done.status });
      duration.observe({ operation }, done.durationMs / 1_000);
      bytes.inc({ direction: "in" }, done.bytesIn);
      bytes.inc({ direction: "out" }, done.bytesOut);
      if (done.operation === "push") {
        authorization.inc({ result: done.status === "ok" ? "accepted" : (done.code ?? done.status) });
      }
      if (done.address) {
        const repo = done.address.label.slice(0, 200);
        if (traffic.has(repo) || traffic.size < maxRepositoriesCounted) {
          traffic.set(repo, (traffic.get(repo) ?? 0) + done.bytesIn + done.bytesOut);
        }
      }
    },
    started: (stallMs) => stall.observe(stallMs / 1_000),
  };
}

export const gitObserver =
  (logger: Logger, metrics: GitMetrics) =>
  (done: GitOperation): void => {
    metrics.observe(done);
    const { operation, status, code, durationMs, fault } = done;
    const repo = done.address?.label;
    if (fault !== undefined && status !== "aborted")
      logger.error({ err: fault, operation, repo }, "a git request failed");
    else logger.debug({ operation, status, code, repo, ms: Math.round(durationMs) }, "git");
  };
