// What a commit did, in words that another machine can follow without running its works: pure effects with explicit numbers.

import type { VerifiedEvent } from "../../nostr/event.js";
import { isLocalRow, type Sequence } from "../port.js";
import type { EngineTable } from "./backend.js";
import type { Removal } from "./row.js";

export type Effect =
  | { readonly type: "stored"; readonly seq: Sequence; readonly event: VerifiedEvent }
  /** `target`: the number of the row that goes. Undefined: the same commit had stored it. */
  | { readonly type: "removed"; readonly removal: Removal; readonly target: Sequence | undefined };

export type TableChanges = ReadonlyMap<EngineTable, ReadonlyMap<string, string | undefined>>;

export interface Effects {
  /** The store's position before. */
  readonly start: Sequence;
  /** And after: what came and went in one commit leaves a gap. */
  readonly position: Sequence;
  /** By ascending numbers. */
  readonly writes: readonly Effect[];
  /** JSON text, or undefined for a deleted row. */
  readonly tables: TableChanges;
  readonly passing: readonly VerifiedEvent[];
}

/** What other machines are told, and what stays here. Undefined: there is nothing of that kind. */
export function separated(effects: Effects): {
  readonly shared: Effects | undefined;
  readonly local: TableChanges | undefined;
} {
  const shared = new Map<EngineTable, Map<string, string | undefined>>();
  const local = new Map<EngineTable, Map<string, string | undefined>>();
  for (const [table, rows] of effects.tables) {
    for (const [key, text] of rows) {
      const part = isLocalRow(table, key) ? local : shared;
      const there = part.get(table) ?? new Map<string, string | undefined>();
      part.set(table, there.set(key, text));
    }
  }
  const isShared = effects.writes.length > 0 || shared.size > 0 || effects.passing.length > 0;
  return {
    shared: isShared ? { ...effects, tables: shared } : undefined,
    local: local.size > 0 ? local : undefined,
  };
}

/** Both parts together again. */
export function withLocal(effects: Effects, local: TableChanges | undefined): Effects {
  if (!local) return effects;
  const tables = new Map([...effects.tables].map(([table, rows]) => [table, new Map(rows)]));
  for (const [table, rows] of local) tables.set(table, new Map([...(tables.get(table) ?? []), ...rows]));
  return { ...effects, tables };
}

/** The effects of commits that followed each other, as of one commit. */
export function joined(all: readonly [Effects, ...Effects[]]): Effects {
  const [first] = all;
  if (all.length === 1) return first;
  const tables = new Map<EngineTable, Map<string, string | undefined>>();
  for (const effects of all) {
    for (const [table, rows] of effects.tables) {
      const there = tables.get(table) ?? new Map<string, string | undefined>();
      for (const [key, text] of rows) there.set(key, text);
      tables.set(table, there);
    }
  }
  return {
    start: first.start,
    position: all[all.length - 1]?.position ?? first.position,
    writes: all.flatMap(({ writes }) => writes),
    tables,
    passing: all.flatMap(({ passing }) => passing),
  };
}
