// How much disk mirrors (GRASP-05) may still take: one budget for all of them (git-http.md, "Archive 50 GiB"). What is
// used is added up from the catalogue now and then; in between, what arrives is counted here.

import type { Clock } from "../base/clock.js";
import { catalogueRows } from "../catalogue/repositories.js";
import type { TableReader } from "../store/port.js";

export interface ArchiveUse {
  readonly repositories: number;
  readonly bytes: number;
}

/** Everything that is on disk as a mirror, those that are leaving included: their data is kept for the grace period. */
export async function archiveUse(reader: TableReader): Promise<ArchiveUse> {
  let repositories = 0;
  let bytes = 0;
  for await (const { archive, status, counters } of catalogueRows(reader)) {
    if (!archive) continue;
    if (status === "archived") repositories++;
    bytes += counters.bytes + counters.pullRequestBytes;
  }
  return { repositories, bytes };
}

const countAgainMs = 60_000;

export class ArchiveBudget {
  #usedBytes = 0;
  #countedMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly reader: TableReader,
    private readonly clock: Clock,
    private readonly maxBytes: () => number,
  ) {}

  async use(): Promise<{ readonly used: number; readonly limit: number }> {
    if (this.clock.monotonicMs() - this.#countedMs >= countAgainMs) {
      this.#countedMs = this.clock.monotonicMs();
      this.#usedBytes = (await archiveUse(this.reader)).bytes;
    }
    return { used: this.#usedBytes, limit: this.maxBytes() };
  }

  async leftBytes(): Promise<number> {
    const { used, limit } = await this.use();
    return Math.max(0, limit - used);
  }

  took(bytes: number): void {
    this.#usedBytes += bytes;
  }
}
