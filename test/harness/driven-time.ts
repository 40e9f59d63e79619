// Time that a test drives, of one server or of a cluster: the same story can be told on both.

import { type Clock, systemClock } from "../../src/base/clock.js";
import { ManualClock } from "../../src/base/testing/manual-clock.js";
import { onCluster } from "./grasp-story.js";
import type { InProcessOptions } from "./server.js";
import { PushedClock } from "./sync-clock.js";

export interface DrivenTime {
  /** What a server is started with to live in this time. */
  readonly parts: Pick<InProcessOptions, "clock" | "timeFrom">;
  nowMs(): number;
  advance(ms: number): void;
  /** The wall clocks of the machines jump; durations do not. */
  jumpWall(ms: number): void;
}

/** The ground of a story whose server is begun with the same parts. */
export function drivenTime(): DrivenTime {
  if (onCluster) return new ClusterTime();
  const clock = new ManualClock(Date.now());
  return {
    parts: { clock },
    nowMs: () => clock.nowMs(),
    advance: (ms) => clock.advance(ms),
    jumpWall: (ms) => clock.jumpWall(ms),
  };
}

/**
 * The cluster's time as each machine has it from PostgreSQL, pushed forward by the same amount on all of them. What holds the
 * cluster together (sessions, beats, looks) lives in real time: for it nobody stood still. PostgreSQL's own clock cannot be
 * moved, so a wall clock that jumps is a machine's.
 */
export class ClusterTime implements DrivenTime {
  readonly #clocks: PushedClock[] = [];
  #aheadMs = 0;
  #wrongMs = 0;

  readonly parts = {
    clock: { ...systemClock, nowMs: () => systemClock.nowMs() + this.#wrongMs },
    timeFrom: (database: Clock): Clock => {
      const clock = new PushedClock(database, this.#aheadMs);
      this.#clocks.push(clock);
      return clock;
    },
  };

  nowMs(): number {
    return systemClock.nowMs() + this.#aheadMs;
  }

  advance(ms: number): void {
    this.#aheadMs += ms;
    for (const clock of this.#clocks) clock.advance(ms);
  }

  jumpWall(ms: number): void {
    this.#wrongMs += ms;
  }
}
