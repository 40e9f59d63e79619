// The launcher, git itself and the repositories: opened together, closed together.

import type { Clock } from "../base/clock.js";
import type { RepositoryLocks } from "../cluster/repository-locks.js";
import type { Config } from "../config/config.js";
import type { PackStore } from "../packs/port.js";
import type { Store } from "../store/port.js";
import { askCapabilities, type Capabilities } from "./advertisement.js";
import { Launcher } from "./launcher.js";
import { Repositories } from "./repositories.js";
import { Git } from "./run.js";

export interface GitHost {
  readonly launcher: Launcher;
  readonly git: Git;
  readonly repositories: Repositories;
  readonly capabilities: Capabilities;
  close(): Promise<void>;
}

/** Where several machines share their packs, and which of them joins them. */
export interface SharedPackStore {
  readonly packs: PackStore;
  readonly leads: () => boolean;
  readonly locks?: RepositoryLocks | undefined;
}

/** `opening`: the store, which may still be opening while git is looked for. */
export async function openGitHost(
  config: Config,
  clock: Clock,
  opening: Store | Promise<Store>,
  onStart: (stallMs: number) => void,
  shared?: SharedPackStore,
): Promise<GitHost> {
  // Without a lock on the data, as with the memory backend, somebody else may use the same directory.
  const launcher = new Launcher(config.databaseBackend === "memory" ? {} : { owner: config.gitDataPath });
  try {
    const git = await Git.find(launcher, { onStart });
    const capabilities = await askCapabilities(git);
    const store = await opening;
    const share = shared && (await import("./share-packs.js")).sharing({ ...shared, store, clock });
    const repositories = new Repositories({ gitDataPath: config.gitDataPath, git, clock, store, share });
    return {
      launcher,
      git,
      repositories,
      capabilities,
      async close() {
        await repositories.close();
        await launcher.close();
      },
    };
  } catch (error) {
    await launcher.close();
    throw error;
  }
}
