// The operator's operations while no server runs: over a store a verb has opened, with git started only if needed.

import type { Clock } from "../base/clock.js";
import { DecisionLog } from "../catalogue/decisions.js";
import type { Operator } from "../cli/abilities.js";
import type { Config } from "../config/config.js";
import { type GitHost, openGitHost } from "../git/git-host.js";
import { createIntake, type Intake } from "../intake/intake.js";
import { reachOf } from "../net/address.js";
import { createVerifierPool } from "../nostr/verify/pool.js";
import type { AdminParts } from "../operator/context.js";
import { refusingKinds } from "../operator/lists.js";
import { runOperation } from "../operator/operations.js";
import { RunTimeRules } from "../operator/rules.js";
import type { Store } from "../store/port.js";
import { storingImports } from "./import-policy.js";
import { offlinePolicy, serverSecret } from "./offline-policy.js";

export async function openOperator(config: Config, store: Store, clock: Clock): Promise<Operator> {
  const rules = new RunTimeRules(store);
  await rules.refresh();
  let gitHost: Promise<GitHost> | undefined;
  let door: ReturnType<typeof openDoor> | undefined;
  const parts: AdminParts = {
    store,
    rules,
    clock,
    repositories: () => {
      gitHost ??= openGitHost(config, clock, () => undefined);
      return gitHost.then(({ repositories }) => repositories);
    },
    config: () => config,
    reach: () => reachOf(config),
    intake: () => {
      door ??= openDoor(rules, config, store, clock);
      return door.then((opened) => opened?.intake);
    },
    adminKeys: () => {
      const own = serverSecret(config);
      return new Set(config.adminNpubs ?? (own ? [own.pubkey] : []));
    },
  };
  const { signal } = new AbortController();
  return {
    run: (request, progress, lines) =>
      runOperation(parts, request, {
        caller: { who: "operator", via: "offline" },
        progress,
        signal,
        ...(lines && { lines }),
      }),
    async close() {
      await (await door)?.close();
      // One that could not be opened is closed already, and the operation has said why.
      await gitHost?.then(
        (opened) => opened.close(),
        () => undefined,
      );
    },
  };
}

/** The store at rest, behind the same door as always: what comes in satisfies this server's rules. */
async function openDoor(
  rules: RunTimeRules,
  config: Config,
  store: Store,
  clock: Clock,
): Promise<{ readonly intake: Intake; close(): Promise<void> } | undefined> {
  const inForce = rules.over(config);
  const everyones = offlinePolicy(inForce);
  const forImports = offlinePolicy(inForce, { whole: true });
  if (!everyones || !forImports) return undefined;
  const policy = refusingKinds(storingImports(everyones, forImports), rules);
  const verifier = await createVerifierPool({ workers: 1 });
  const observer = { received: () => undefined, decided: () => undefined };
  const maxFutureSeconds = config.maxFutureSecs;
  const decisions = new DecisionLog({ store, clock, failed: () => undefined });
  const intake = createIntake({ store, verifier, policy, decisions, clock, observer, maxFutureSeconds });
  return {
    intake,
    async close() {
      await decisions.written();
      await verifier.close();
    },
  };
}
