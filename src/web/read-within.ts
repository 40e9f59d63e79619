// Events for a page: only so many bytes of them, because strangers decide how long they are and how many there are
// (threats row 33). Whoever reads takes small facts along; texts are gone when the next page of rows is read.

import type { Filter } from "../nostr/filter.js";
import type { Reader, StoredRow } from "../store/port.js";

const pageRows = 50;

/** Visits the newest matches until `maxBytes` of text were read; true when there were more. */
export async function readWithin(
  reader: Reader,
  filters: readonly Filter[],
  maxBytes: number,
  visit: (row: StoredRow) => void,
  signal?: AbortSignal,
): Promise<boolean> {
  let bytes = 0;
  for await (const page of reader.query(filters, { pageRows, passingRows: true, ...(signal && { signal }) })) {
    for (const row of page) {
      if (bytes > maxBytes) return true;
      bytes += row.size;
      visit(row);
    }
  }
  return false;
}

/** The text by itself: a part of a long one keeps all of it in memory. */
export const ownText = (text: string): string => Buffer.from(text, "utf16le").toString("utf16le");
