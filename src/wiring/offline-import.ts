// The rooms that take events and git data, without a port: for moving another server's data here while none runs.

import type { Clock } from "../base/clock.js";
import { DecisionLog } from "../catalogue/decisions.js";
import type { Config } from "../config/config.js";
import { openGitHost } from "../git/git-host.js";
import type { ImportHouse } from "../import/import-repositories.js";
import { createIntake } from "../intake/intake.js";
import { createVerifierPool } from "../nostr/verify/pool.js";
import { refusingKinds } from "../operator/lists.js";
import { RunTimeRules } from "../operator/rules.js";
import { Purgatory } from "../purgatory/purgatory.js";
import type { Store } from "../store/port.js";
import { packBudgets, purgatorySettings } from "./limits.js";
import { offlinePolicy } from "./offline-policy.js";

export async function openImport(
  config: Config,
  store: Store,
  clock: Clock,
): Promise<(ImportHouse & { close(): Promise<void> }) | undefined> {
  const rules = new RunTimeRules(store);
  await rules.refresh();
  const inForce = rules.over(config);
  const policy = offlinePolicy(inForce, { whole: true });
  if (!policy) return undefined;
  const gitHost = await openGitHost(config, clock, () => undefined);
  const verifier = await createVerifierPool({ workers: 1 });
  const decisions = new DecisionLog({ store, clock, failed: () => undefined });
  const purgatory = new Purgatory({
    store,
    repositories: gitHost.repositories,
    clock,
    settings: () => purgatorySettings(inForce),
    // The operator is there and watches.
    diskShareUsed: async () => 0,
    observer: {
      released: () => undefined,
      expired: () => undefined,
      problem: () => undefined,
      failed(what, error) {
        throw new Error(`${what} failed`, { cause: error });
      },
    },
  });
  await purgatory.resume();
  const intake = createIntake({
    store,
    verifier,
    policy: refusingKinds(policy, rules),
    git: {
      follow: (event, verdict) => purgatory.entered(event, verdict),
      failed(event, error) {
        throw new Error(`git could not follow event ${event.id}`, { cause: error });
      },
    },
    decisions,
    clock,
    observer: { received: () => undefined, decided: () => undefined },
    maxFutureSeconds: config.maxFutureSecs,
  });
  return {
    store,
    intake,
    repositories: gitHost.repositories,
    purgatory,
    // A whole history comes as one pack: the repository's quota bounds it, not a push's.
    budgets: { ...packBudgets(config), maxPackBytes: config.repositoryMaxBytes, maxObjects: 2 ** 31 },
    pushWallClockMs: 6 * 60 * 60_000,
    async close() {
      await purgatory.close();
      await decisions.written();
      await verifier.close();
      await gitHost.close();
    },
  };
}
