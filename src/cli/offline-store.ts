// Opens the store for a verb that works without the server, under the data directory's lock, and closes both.

import type { Config } from "../config/config.js";
import type { Store } from "../store/port.js";
import { type Abilities, CommandFailure } from "./abilities.js";
import { lockDataDirectory } from "./data-lock.js";

export async function withOfflineStore<T>(
  abilities: Abilities,
  config: Config,
  work: (store: Store) => Promise<T>,
): Promise<T> {
  if (config.databaseBackend === "memory") {
    throw new CommandFailure(
      "the memory backend keeps nothing on disk, so there is nothing to work on while it does not run",
    );
  }
  const lock = lockDataDirectory(config.relayDataPath);
  if (!lock.ok) {
    throw new CommandFailure(
      `the data directory ${config.relayDataPath} is in use by process ${lock.holderPid}. Stop it first, for instance with \`kill ${lock.holderPid}\``,
    );
  }
  try {
    const store = await abilities.openStore(config);
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  } finally {
    lock.release();
  }
}
