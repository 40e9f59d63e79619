// How full the disks are (git-http.md, "Disk"): looked at every two seconds, so that asking costs nothing. Pushes are
// refused from NGIT_DISK_PUSH_MAX_PERCENT, events from NGIT_DISK_EVENTS_MAX_PERCENT; reads go on, and so do writes as
// soon as there is room. Deletes nothing to make room.

import { statfs } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { Gauge, type Registry } from "prom-client";
import type { Clock } from "../base/clock.js";
import { repeatedly } from "../base/clock.js";
import type { Config } from "../config/config.js";

export interface DiskReading {
  readonly totalBytes: number;
  /** What is left for this server, without what is reserved for root. */
  readonly freeBytes: number;
}

/** Undefined: it cannot be told. */
export type ReadDisk = (folder: string) => Promise<DiskReading | undefined>;

export type Volume = "git" | "relay";

const lookEveryMs = 2_000;

/** A folder that is not there yet will be where its parent is. */
export const readDisk: ReadDisk = async (folder) => {
  const disk = await statfs(folder).catch(() => undefined);
  if (disk) return { totalBytes: disk.blocks * disk.bsize, freeBytes: disk.bavail * disk.bsize };
  const parent = dirname(resolve(folder));
  return parent === resolve(folder) ? undefined : readDisk(parent);
};

const usedShare = ({ totalBytes, freeBytes }: DiskReading): number => (totalBytes > 0 ? 1 - freeBytes / totalBytes : 0);

export class Disks {
  readonly #readings = new Map<Volume, DiskReading>();
  readonly #watching: { close(): Promise<void> };

  private constructor(
    readonly folders: ReadonlyMap<Volume, string>,
    readonly read: ReadDisk,
    clock: Clock,
  ) {
    // What cannot be read counts as it was.
    this.#watching = repeatedly(
      clock,
      () => lookEveryMs,
      () => this.#look(),
      () => undefined,
    );
  }

  static async open(config: Config, clock: Clock, read: ReadDisk = readDisk): Promise<Disks> {
    const relay: [Volume, string][] = config.databaseBackend === "memory" ? [] : [["relay", config.relayDataPath]];
    const disks = new Disks(new Map<Volume, string>([["git", config.gitDataPath], ...relay]), read, clock);
    await disks.#look();
    return disks;
  }

  async #look(): Promise<void> {
    for (const [volume, folder] of this.folders) {
      const reading = await this.read(folder);
      if (reading) this.#readings.set(volume, reading);
    }
  }

  /** 0 to 1. */
  shareUsed(volume: Volume): number {
    const reading = this.#readings.get(volume);
    return reading ? usedShare(reading) : 0;
  }

  get fullest(): number {
    return Math.max(0, ...[...this.folders.keys()].map((volume) => this.shareUsed(volume)));
  }

  get gitFreeBytes(): number {
    return this.#readings.get("git")?.freeBytes ?? Number.POSITIVE_INFINITY;
  }

  measure(registry: Registry): void {
    const gauge = (name: string, help: string, value: (reading: DiskReading) => number): void => {
      const readings = this.#readings;
      new Gauge({
        name,
        help,
        labelNames: ["volume"],
        registers: [registry],
        collect() {
          for (const [volume, reading] of readings) this.set({ volume }, value(reading));
        },
      });
    };
    gauge("ngit_disk_used_ratio", "Share of the disk in use, by what is on it", usedShare);
    gauge("ngit_disk_free_bytes", "Bytes left on the disk, by what is on it", ({ freeBytes }) => freeBytes);
  }

  close(): Promise<void> {
    return this.#watching.close();
  }
}
