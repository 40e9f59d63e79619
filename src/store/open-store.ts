// Which store the settings ask for.

import type { Clock } from "../base/clock.js";
import type { Config } from "../config/config.js";
import { openLmdbStore } from "./lmdb/open.js";
import { createMemoryStore } from "./memory/memory-store.js";
import type { Store } from "./port.js";

export async function openStore(config: Config, clock: Clock, tell?: (sentence: string) => void): Promise<Store> {
  switch (config.databaseBackend) {
    case "memory":
      return createMemoryStore({ clock });
    case "lmdb":
      return openLmdbStore(config.relayDataPath, { clock, ...(tell && { tell }) });
    case "postgres":
      throw new Error("a machine of a cluster opens its store before its server (start-cluster.ts)");
  }
}
