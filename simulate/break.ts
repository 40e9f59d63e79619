// What a deliberate mistake may change: the core's inputs, its commands, a number, a verdict.

import type { NostrEvent } from "../src/nostr/event.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import type { Command, Input, Time } from "../src/sync/core/messages.js";
import type { CoreSnapshot } from "../src/sync/core/standing.js";
import type { ModelServer } from "./model-server.js";

/** A deliberate mistake, put between the world and the core: the checks must notice it. */
export interface Break {
  readonly config?: Partial<SyncConfig>;
  input?(input: Input): Input | undefined;
  command?(command: Command, now: Time): Command | undefined;
  /** What the core says of itself. */
  snapshot?(snapshot: CoreSnapshot): CoreSnapshot;
  judge?(outcome: ReturnType<ModelServer["judge"]>, event: NostrEvent): ReturnType<ModelServer["judge"]>;
}
