// How long the disk itself takes for one small write with its sync, asked beside the attacks. An event's OK waits for such
// a sync, so a run on a disk that stalls is told from a server that stalls.

import { type FileHandle, open } from "node:fs/promises";
import { percentile } from "../../bench/rows.js";

export interface DiskTimes {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly worstMs: number;
}

const everyMs = 200;

export class DiskWatch {
  readonly #times: number[] = [];
  #isOver = false;
  readonly #running: Promise<void>;

  constructor(path: string) {
    this.#running = this.#run(path);
  }

  async #run(path: string): Promise<void> {
    const file = await open(path, "w");
    try {
      while (!this.#isOver) {
        this.#times.push(await writeTook(file));
        await new Promise((resolve) => setTimeout(resolve, everyMs));
      }
    } finally {
      await file.close();
    }
  }

  async stop(): Promise<DiskTimes> {
    this.#isOver = true;
    await this.#running;
    const times = this.#times;
    return { p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99), worstMs: Math.max(...times) };
  }
}

async function writeTook(file: FileHandle): Promise<number> {
  const began = performance.now();
  await file.write(Buffer.alloc(4_096, 1), 0, 4_096, 0);
  await file.datasync();
  return performance.now() - began;
}
