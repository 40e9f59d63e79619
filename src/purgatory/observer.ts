// What the waiting room does, in the log and in the metrics. The markers are for scripts.

import { type Clock, unixSeconds } from "../base/clock.js";
import type { DecisionLog } from "../catalogue/decisions.js";
import { releaseRecord } from "../catalogue/decisions.js";
import { repositoryAddress } from "../catalogue/repositories.js";
import type { Logger } from "../config/logging.js";
import type { PurgatoryMetrics } from "./metrics.js";
import type { PurgatoryObserver } from "./purgatory.js";

export function purgatoryObserver(
  logger: Logger,
  metrics: PurgatoryMetrics,
  decisions: Pick<DecisionLog, "note">,
  clock: Clock,
  alsoExpired: PurgatoryObserver["expired"],
): PurgatoryObserver {
  return {
    released(released) {
      metrics.released(released);
      const message = `released (${released.via}) after ${released.waitedSeconds} s`;
      decisions.note(releaseRecord(released.entry, unixSeconds(clock), message));
      logger.info({ id: released.id, kind: released.kind, via: released.via }, "released");
    },
    expired(entry, expiry) {
      metrics.expired(entry, expiry);
      alsoExpired(entry, expiry);
      const { id, kind, repositories } = entry;
      const text = `[PURGATORY_EXPIRED] id=${id} kind=${kind} source=${entry.source.type} to=${expiry.to}`;
      logger.info({ id, kind, repositories }, text);
    },
    placeholdersExpired(count) {
      metrics.placeholdersExpired(count);
      logger.info({ count }, `[PURGATORY_EXPIRED] kind=placeholder count=${count}`);
    },
    problem: (name, what) => logger.warn({ repo: repositoryAddress(name) }, what),
    failed: (what, error) => logger.error({ err: error }, `${what} failed`),
  };
}
