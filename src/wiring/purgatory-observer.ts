// What the waiting room does, in the log and in the metrics. The markers are for scripts.

import { repositoryAddress } from "../admission/names.js";
import type { Logger } from "../config/logging.js";
import type { PurgatoryMetrics } from "../purgatory/metrics.js";
import type { PurgatoryObserver } from "../purgatory/purgatory.js";

export function purgatoryObserver(
  logger: Logger,
  metrics: PurgatoryMetrics,
  alsoExpired: PurgatoryObserver["expired"],
): PurgatoryObserver {
  return {
    released(released) {
      metrics.released(released);
      logger.info({ id: released.id, kind: released.kind, via: released.via }, "released");
    },
    expired(entry, expiry) {
      metrics.expired(entry, expiry);
      alsoExpired(entry, expiry);
      const { id, kind, repositories } = entry;
      const text = `[PURGATORY_EXPIRED] id=${id} kind=${kind} source=${entry.source.type} to=${expiry.to}`;
      logger.info({ id, kind, repositories }, text);
    },
    problem: (name, what) => logger.warn({ repo: repositoryAddress(name) }, what),
    failed: (what, error) => logger.error({ err: error }, `${what} failed`),
  };
}
