// Counts what the server did in each hour. It reads the numbers that metrics count anyway, every few minutes and when an hour
// is over, so that no event and no push pays for it; a crash loses the last few minutes. Pages read the rows from memory.

import type { Registry } from "prom-client";
import { type Clock, repeatedly } from "../base/clock.js";
import { emptyHour, type HourRow, hoursKept, storedHours, writeHour } from "../catalogue/hours.js";
import type { Context } from "../context.js";

const hourMs = 3_600_000;
const lookEveryMs = 10 * 60_000;
/** The look that closes an hour comes a little after it, never before. */
const afterTheHourMs = 100;

/** Numbers that only grow while the process lives. */
interface Counts {
  readonly events: number;
  readonly pushes: number;
  readonly refusals: number;
  readonly arrivals: number;
  readonly lagSeconds: number;
}

const countNames = ["events", "pushes", "refusals", "arrivals", "lagSeconds"] as const satisfies (keyof Counts)[];

const noCounts: Counts = { events: 0, pushes: 0, refusals: 0, arrivals: 0, lagSeconds: 0 };

/** What came since the last look belongs to the hour of this look. A counter that began anew (sync was restarted) counts from 0. */
export function grown(row: HourRow, before: Counts, now: Counts, diskPercent: number): HourRow {
  const more = countNames.map((name) => {
    const added = now[name] >= before[name] ? now[name] - before[name] : now[name];
    return [name, row[name] + added] as const;
  });
  return { ...row, ...Object.fromEntries(more), diskPercent };
}

export const hourOf = (ms: number): number => Math.floor(ms / hourMs);

interface RecordParts extends Pick<Context, "clock" | "store" | "registry" | "logger"> {
  /** 0 to 1. */
  readonly diskUsed: () => number;
}

export class BusyHours {
  #rows: HourRow[];
  #before: Counts = noCounts;
  /** One count after the other: each begins where the last ended. */
  #counting: Promise<unknown> = Promise.resolve();
  readonly #looking: { close(): Promise<void> };

  private constructor(
    private readonly parts: RecordParts,
    rows: HourRow[],
  ) {
    this.#rows = rows;
    const { clock } = parts;
    this.#looking = repeatedly(
      clock,
      () => untilNextLook(clock),
      () => this.#look(),
      (error) => this.#failed(error),
    );
  }

  static async open(parts: RecordParts): Promise<BusyHours> {
    return new BusyHours(parts, await storedHours(parts.store));
  }

  /** Oldest first, with what the running hour has brought so far; hours in which no server ran are missing. */
  async upToNow(): Promise<readonly HourRow[]> {
    await this.#count();
    return this.#rows;
  }

  #count(): Promise<HourRow> {
    const counted = this.#counting.then(() => this.#countOnce());
    this.#counting = counted.catch(() => undefined);
    return counted;
  }

  async #countOnce(): Promise<HourRow> {
    const { clock, registry, diskUsed } = this.parts;
    const now = await countsIn(registry);
    // An hour that is over ends with its last look: what came since is a few minutes' at most.
    const hour = hourOf(clock.nowMs());
    const last = this.#rows.at(-1);
    const isNew = last === undefined || last.hour < hour;
    const row = grown(isNew ? emptyHour(hour) : last, this.#before, now, Math.round(diskUsed() * 1000) / 10);
    this.#before = now;
    this.#rows = [...(isNew ? this.#rows : this.#rows.slice(0, -1)), row].filter((one) => one.hour > hour - hoursKept);
    return row;
  }

  async #look(): Promise<void> {
    await writeHour(this.parts.store, await this.#count());
  }

  /** The rows are for looking at: a store that cannot write now has told of it elsewhere. */
  #failed(error: unknown): void {
    this.parts.logger.warn({ err: error }, "how busy this hour is could not be written yet");
  }

  async close(): Promise<void> {
    await this.#looking.close();
    await this.#look().catch((error: unknown) => this.#failed(error));
  }
}

function untilNextLook(clock: Clock): number {
  const untilHourMs = hourMs - (clock.nowMs() % hourMs) + afterTheHourMs;
  return Math.min(lookEveryMs, untilHourMs);
}

async function countsIn(registry: Registry): Promise<Counts> {
  const sum = async (name: string, isWanted: (value: Sampled) => boolean = () => true): Promise<number> => {
    const values = ((await registry.getSingleMetric(name)?.get())?.values ?? []) as Sampled[];
    return values.filter(isWanted).reduce((all, { value }) => all + value, 0);
  };
  const pushes = "ngit_git_push_authorization_total";
  const lag = "ngit_sync_live_lag_seconds";
  return {
    events: await sum("ngit_events_stored_total"),
    pushes: await sum(pushes, ({ labels }) => labels.result === "accepted"),
    refusals:
      (await sum("ngit_events_rejected_total")) + (await sum(pushes, ({ labels }) => labels.result !== "accepted")),
    arrivals: await sum(lag, ({ metricName }) => metricName === `${lag}_count`),
    lagSeconds: await sum(lag, ({ metricName }) => metricName === `${lag}_sum`),
  };
}

interface Sampled {
  readonly value: number;
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number | undefined>>;
}
