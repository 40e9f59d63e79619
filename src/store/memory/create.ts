// A store that lives as long as the process.

import { type Clock, systemClock } from "../../base/clock.js";
import { EngineStore } from "../engine/engine.js";
import type { Store } from "../port.js";
import { MemoryBackend } from "./memory-backend.js";

export interface MemoryStoreOptions {
  readonly clock?: Clock;
  readonly maxQueuedWorks?: number;
}

export function createMemoryStore(options: MemoryStoreOptions = {}): Store {
  const backend = new MemoryBackend();
  const { clock = systemClock, maxQueuedWorks } = options;
  return new EngineStore(backend, backend.layers, { clock, maxQueuedWorks });
}
