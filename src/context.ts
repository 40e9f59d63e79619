// What every room of a running server shares. The server makes it once; rooms take it whole, beside the rooms they use.

import type { Registry } from "prom-client";
import type { Clock } from "./base/clock.js";
import type { LiveConfig } from "./config/load.js";
import type { Logger } from "./config/logging.js";
import type { ServiceName } from "./net/url.js";
import type { Pubkey } from "./nostr/event.js";
import type { LedBy, Store } from "./store/port.js";

export interface Context {
  /** The settings; read when they are needed, because some change while the server runs. */
  readonly live: LiveConfig;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where metrics are registered. */
  readonly registry: Registry;
  readonly store: Store;
  /** As whose work this room's is done: of what one machine does for all of a cluster. */
  readonly ledBy?: LedBy;
  /** The first is the name people see; others are further names of the same service. At least one. */
  readonly services: readonly ServiceName[];
  readonly serverKey: Pubkey;
  /** Of this program. */
  readonly version: string;
  /** Something failed that nobody expected. */
  readonly onFault: (error: unknown) => void;
}
