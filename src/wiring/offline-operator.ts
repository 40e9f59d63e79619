// The operator's operations while no server runs: over a store a verb has opened, with git started only if needed.

import { runOperation } from "../admin/operations.js";
import type { Outcome } from "../admin/outcome.js";
import type { Progress } from "../admin/parts.js";
import { RunTimeRules } from "../admin/rules.js";
import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import { loadServerKey } from "../config/server-key.js";
import { Launcher } from "../git/launcher.js";
import { Repositories } from "../git/repositories.js";
import { Git } from "../git/run.js";
import type { Pubkey } from "../nostr/ids.js";
import { SecretKey } from "../nostr/keys.js";
import type { Store } from "../store/port.js";

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
  const open = async (): Promise<Repositories> => {
    launcher = new Launcher();
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
        adminKeys: () => new Set(config.adminNpubs ?? serverKeyOf(config)),
      },
      request,
      { caller: { who: "operator", via: "offline" }, progress, signal: new AbortController().signal },
    );
  } finally {
    await launcher?.close();
  }
}

function serverKeyOf(config: Config): Pubkey[] {
  const key = loadServerKey(config);
  const secret = key.ok ? SecretKey.fromHex(key.secretHex) : undefined;
  return secret ? [secret.pubkey] : [];
}
