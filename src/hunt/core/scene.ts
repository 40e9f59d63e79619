// What the two halves of the core share: the jobs, the time, the moments to wake up at, and the list of commands.

import type { HuntConfig } from "./config.js";
import type { DueTimes } from "./due-times.js";
import type { HuntJob } from "./job.js";
import type { Emit, FetchId } from "./messages.js";

export type Due =
  | { readonly type: "job"; readonly key: string }
  /** Servers that showed to have what a job lacks are to be asked. */
  | { readonly type: "promised"; readonly key: string }
  /** A fetch has run long enough for the next URL to start beside it. */
  | { readonly type: "slow"; readonly fetch: FetchId }
  /** A domain's rate window frees up. */
  | { readonly type: "domain"; readonly name: string };

export interface Scene {
  readonly config: HuntConfig;
  readonly jobs: Map<string, HuntJob>;
  readonly due: DueTimes<Due>;
  readonly emit: Emit;
  nowMs: number;
}
