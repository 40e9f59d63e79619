// `events import|export|scan|delete`: events in and out of the store as the operator wishes, page by page, so that memory
// stays flat however many there are. What comes in comes through intake; what goes takes along what leans on it.

import type { IntakeAnswer } from "../intake/intake.js";
import { parseEvent } from "../nostr/event.js";
import { type Filter, parseFilter } from "../nostr/filter.js";
import {
  type AdminParts,
  done,
  keyUnusable,
  noteChange,
  type OperationContext,
  type Outcome,
  refusal,
} from "./context.js";
import { followInGit, takeAway } from "./hosting.js";

const pageRows = 200;

/** Filters as JSON from outside; none means all events. */
export function filtersNamed(values: readonly unknown[]): Outcome<readonly Filter[]> {
  if (values.length === 0) return done([{}]);
  const filters: Filter[] = [];
  for (const value of values) {
    const parsed = parseFilter(value);
    if (!parsed.ok) return refusal("bad-request", `${JSON.stringify(value)}: ${parsed.message}`);
    filters.push(parsed.filter);
  }
  return done(filters);
}

export interface ImportTally {
  stored: number;
  /** For their git data. */
  waiting: number;
  known: number;
  refused: Record<string, number>;
}

/** Through the one door, all at once, so that they share commits. The answers are in the order of the values. */
export async function submitAll(
  parts: AdminParts,
  values: readonly unknown[],
): Promise<Outcome<readonly IntakeAnswer[]>> {
  const intake = await parts.intake();
  if (!intake) return keyUnusable;
  const answers = values.map(async (value): Promise<IntakeAnswer> => {
    const parsed = parseEvent(value);
    return parsed.ok ? intake.submit(parsed.event, { type: "import" }) : parsed;
  });
  return done(await Promise.all(answers));
}

export function noteAnswer(tally: ImportTally, answer: IntakeAnswer): void {
  if (!answer.ok) tally.refused[answer.code] = (tally.refused[answer.code] ?? 0) + 1;
  else if (answer.outcome === "stored") tally.stored++;
  else if (answer.outcome === "held" || answer.outcome === "waiting") tally.waiting++;
  else tally.known++;
}

/** One request's worth. */
export async function importEvents(parts: AdminParts, values: readonly unknown[]): Promise<Outcome<ImportTally>> {
  const answers = await submitAll(parts, values);
  if (!answers.ok) return answers;
  const tally: ImportTally = { stored: 0, waiting: 0, known: 0, refused: {} };
  for (const answer of answers.result) noteAnswer(tally, answer);
  return done(tally);
}

export async function exportEvents(
  { store }: AdminParts,
  filters: readonly Filter[],
  { progress, signal, lines }: OperationContext,
): Promise<Outcome<{ readonly exported: number }>> {
  if (!lines) return refusal("not-possible", "events are exported by `holdfast events export`");
  const total = await store.count(filters, { signal });
  let exported = 0;
  for await (const page of store.query(filters, { pageRows, signal })) {
    await lines(page.map((row) => row.json.toString("utf8")));
    exported += page.length;
    progress(exported, total, "export");
  }
  return done({ exported });
}

export interface Scanned {
  readonly events: number;
  readonly bytes: number;
  readonly byKind: Readonly<Record<number, number>>;
}

export async function scanEvents(
  { store }: AdminParts,
  filters: readonly Filter[],
  { progress, signal }: OperationContext,
): Promise<Outcome<Scanned>> {
  const total = await store.count(filters, { signal });
  const byKind: Record<number, number> = {};
  let events = 0;
  let bytes = 0;
  for await (const page of store.query(filters, { pageRows, signal })) {
    for (const row of page) {
      byKind[row.event.kind] = (byKind[row.event.kind] ?? 0) + 1;
      bytes += row.json.length;
    }
    events += page.length;
    progress(events, total, "scan");
  }
  return done({ events, bytes, byKind });
}

export interface Deleted {
  readonly matching: number;
  readonly deleted: number;
}

/** Those stored when it was asked for. Nothing refuses them when they are sent again: for that there are bans. */
export async function deleteEvents(
  parts: AdminParts,
  { filters, really, named }: { readonly filters: readonly Filter[]; readonly really: boolean; readonly named: string },
  { caller, progress, signal }: OperationContext,
): Promise<Outcome<Deleted>> {
  const { store, clock } = parts;
  const matching = await store.count(filters, { signal });
  if (!really) return done({ matching, deleted: 0 });
  await store.transact((tx) => noteChange(tx, clock, caller, { what: "delete events", target: named }));
  let deleted = 0;
  for await (const page of store.query(filters, { pageRows, upTo: store.position, signal })) {
    const withdrawn = await store.transact(async (tx) => {
      const found = await Promise.all(page.map(({ id }) => tx.event(id)));
      const stored = found.flatMap((row) => (row ? [row.event] : []));
      return takeAway(parts, tx, { stored, waiting: [] }, "operator");
    });
    await followInGit(parts, withdrawn);
    deleted += withdrawn.events.length;
    progress(deleted, matching, "delete");
  }
  return done({ matching, deleted });
}
