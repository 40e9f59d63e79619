// How busy the server was, an hour a row, for the pictures on /status and /admin. Table "meta", this machine's own:
//   hour:<hours since 1970, 8 digits> → HourRow
// Kept for a month; the row of the running hour is written again and again until the hour is over.

import type { Store, TableReader } from "../store/port.js";

export interface HourRow {
  /** Hours since 1970. */
  readonly hour: number;
  /** Events that were stored. */
  readonly events: number;
  /** Pushes that were taken. */
  readonly pushes: number;
  /** Events and pushes that were refused. */
  readonly refusals: number;
  /** Of the fullest disk, at the end of the hour. */
  readonly diskPercent: number;
  /** Events that other relays sent as they happened, and how late they were, in all. */
  readonly arrivals: number;
  readonly lagSeconds: number;
}

export const emptyHour = (hour: number): HourRow => ({
  ...{ hour, events: 0, pushes: 0, refusals: 0, diskPercent: 0, arrivals: 0, lagSeconds: 0 },
});

export const hoursKept = 31 * 24;

const prefix = "hour:";
const keyOf = (hour: number): string => `${prefix}${String(hour).padStart(8, "0")}`;

/** Oldest first. */
export async function storedHours(reader: TableReader): Promise<HourRow[]> {
  const rows: HourRow[] = [];
  for await (const [, row] of reader.rows<HourRow>("meta", { prefix })) rows.push(row);
  return rows;
}

/** Rows that are too old go with the same commit. */
export async function writeHour(store: Store, row: HourRow): Promise<void> {
  await store.transact(
    async (tx) => {
      tx.setRow<HourRow>("meta", keyOf(row.hour), row);
      const first = keyOf(row.hour - hoursKept + 1);
      for await (const [key] of tx.rows("meta", { prefix })) {
        if (key >= first) break;
        tx.deleteRow("meta", key);
      }
    },
    { isLocal: true },
  );
}
