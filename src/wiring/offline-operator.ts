// The operator's operations while no server runs: over a store a verb has opened, with git started only if needed.

import { runOperation } from "../admin/operations.js";
import type { Outcome } from "../admin/outcome.js";
import type { Progress } from "../admin/parts.js";
import { RunTimeRules } from "../admin/rules.js";
import { DecisionLog } from "../admission/decision-log.js";
import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import { loadServerKey } from "../config/server-key.js";
import { Launcher } from "../git/launcher.js";
import { Repositories } from "../git/repositories.js";
import { Git } from "../git/run.js";
import { createIntake, type Intake } from "../intake/intake.js";
import type { Pubkey } from "../nostr/ids.js";
import { SecretKey } from "../nostr/keys.js";
import { createVerifierPool } from "../nostr/verify/pool.js";
import type { Store } from "../store/port.js";
import { offlinePolicy } from "./offline-policy.js";
import { reachOf } from "./reach.js";

export async function operateOffline(
  config: Config,
  store: Store,
  clock: Clock,
  request: { readonly operation: string; readonly parameters: unknown },
  progress: Progress,
): Promise<Outcome<unknown>> {
  const rules = new RunTimeRules(store);
  await rules.refresh();
  let launcher: Launcher | undefined;
  let opening: Promise<Repositories> | undefined;
  let door: ReturnType<typeof openDoor> | undefined;
  const open = async (): Promise<Repositories> => {
    launcher = new Launcher({ owner: config.gitDataPath });
    const git = await Git.find(launcher);
    return new Repositories({ gitDataPath: config.gitDataPath, git, clock });
  };
  try {
    return await runOperation(
      {
        store,
        rules,
        clock,
        repositories: () => {
          opening ??= open();
          return opening;
        },
        config: () => config,
        reach: () => reachOf(config),
        intake: () => {
          door ??= openDoor(rules.over(config), store, clock);
          return door.then((opened) => opened?.intake);
        },
        adminKeys: () => new Set(config.adminNpubs ?? serverKeyOf(config)),
      },
      request,
      { caller: { who: "operator", via: "offline" }, progress, signal: new AbortController().signal },
    );
  } finally {
    await (await door)?.close();
    await launcher?.close();
  }
}

/** The store at rest, behind the same door as always: what comes in satisfies this server's rules. */
async function openDoor(
  config: Config,
  store: Store,
  clock: Clock,
): Promise<{ readonly intake: Intake; close(): Promise<void> } | undefined> {
  const policy = offlinePolicy(config);
  if (!policy) return undefined;
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

function serverKeyOf(config: Config): Pubkey[] {
  const key = loadServerKey(config);
  const secret = key.ok ? SecretKey.fromHex(key.secretHex) : undefined;
  return secret ? [secret.pubkey] : [];
}
