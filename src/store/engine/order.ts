// The order of commits. A store alone on its machine has its own; machines that share a log take turns in one.

import type { Batch } from "./batch.js";
import type { View } from "./view.js";

export interface Order {
  /** How long a work that nobody waits for may wait for others. 0: a commit costs little, and nothing waits. */
  readonly ridersWaitMs: number;
  /** A work that takes no part in the order needs no other machine. */
  readonly isShared: boolean;
  /** Works stop being added to a batch when their text is about as long as this. */
  readonly batchBytes: number;
  /**
   * Calls `run` when everything that was committed before, anywhere, is in the view and nobody else can commit; then commits
   * what it answers (undefined: nothing). Resolves when that is durable and in the view. Rejections before `run` was called
   * concern all works, later ones the works it ran.
   */
  commit(run: () => Promise<Batch | undefined>): Promise<void>;
  /** Whether works of a commit that failed so may be run again, each alone. */
  mayRunAgain(error: unknown): boolean;
  /** Brings what others have committed into the view. */
  catchUp(): Promise<void>;
  /** See `Store.upToDate`. */
  upToDate(): Promise<void> | undefined;
  /** Why this machine must answer nothing at all. */
  readonly stopped: Error | undefined;
  /** Whether this machine follows the order closely enough to be asked. */
  readonly isReady: boolean;
  /** Who leads, as a number that grows with each change of leader; undefined where nobody has to. Known while `run` runs. */
  readonly epoch: number | undefined;
  close(): Promise<void>;
}

export class OwnOrder implements Order {
  readonly ridersWaitMs = 0;
  readonly isShared = false;
  readonly batchBytes = Number.POSITIVE_INFINITY;
  readonly stopped = undefined;
  readonly isReady = true;
  readonly epoch = undefined;

  constructor(readonly view: View) {}

  async commit(run: () => Promise<Batch | undefined>): Promise<void> {
    const batch = await run();
    if (batch) await this.view.commit(batch);
  }

  mayRunAgain(): boolean {
    return true;
  }

  async catchUp(): Promise<void> {}

  upToDate(): undefined {}

  async close(): Promise<void> {}
}
