// Brings the file of an earlier version to today's format, at start, before anything reads it. Format 2 lists some kinds
// by tag and kind (engine/terms.ts). Written in small transactions; until the last one sets the version, a start that was
// cut short begins again: entries written twice are the same entries.

import type { Entry } from "../engine/order.js";
import { isListedByTagAndKind, kindsUnderAddress, ofKind, ofTagAndKind } from "../engine/terms.js";
import type { Database } from "./database.js";
import { entryBytes, termKeyOf, writeEntry, writeTerm } from "./keys.js";
import type { LmdbBackend } from "./lmdb-backend.js";
import { setMeta } from "./rows.js";

export const formatVersion = 2;
/** Formats this program can bring up to date. */
export const isKnownFormat = (version: number): boolean => version >= 1 && version <= formatVersion;

const rowsAStep = 500;
const nothing = Buffer.alloc(0);

export async function migrate(database: Database, backend: LmdbBackend, seed: number): Promise<number> {
  let rows = 0;
  for (const kind of kindsUnderAddress) {
    let after: Entry | undefined;
    for (;;) {
      const entries = backend.scan(ofKind(kind), after, 0, Number.MAX_SAFE_INTEGER, rowsAStep);
      await database.write(() => {
        for (const entry of entries) listByTagAndKind(database, backend, seed, kind, entry);
      });
      rows += entries.length;
      after = entries.at(-1);
      if (entries.length < rowsAStep) break;
    }
  }
  await database.write(() => setMeta(database, "version", formatVersion));
  return rows;
}

function listByTagAndKind(database: Database, backend: LmdbBackend, seed: number, kind: number, entry: Entry): void {
  // Terms are hashed: another kind may share the list.
  const row = backend.row(entry.seq);
  if (row?.kind !== kind) return;
  const key = Buffer.alloc(entryBytes);
  for (const [name, value] of row.tags) {
    if (name === undefined || value === undefined || !isListedByTagAndKind(name, kind)) continue;
    writeTerm(key, termKeyOf(ofTagAndKind(name, value, kind), seed));
    writeEntry(key, entry);
    database.entries.put(key, nothing);
  }
}
