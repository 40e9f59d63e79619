// Table "audit": who changed what, and when. Written in the transaction of the change itself. Keys are numbers that
// only grow; the newest `maxAuditRows` are kept.

import { type Clock, unixSeconds } from "../base/clock.js";
import type { TableReader, Transaction } from "../store/port.js";

/** Who asks: an npub, or `operator` for whoever may open the data directory's socket. */
export interface Caller {
  readonly who: string;
  readonly via: "socket" | "offline" | "nip-86" | "api" | "page";
}

export interface AuditRow {
  readonly at: number;
  readonly who: string;
  readonly via: Caller["via"];
  readonly what: string;
  readonly target: string;
  readonly reason: string;
}

export interface Change {
  readonly what: string;
  readonly target: string;
  readonly reason?: string;
}

export const maxAuditRows = 10_000;
const keyDigits = 12;
const keyOf = (number: number): string => String(number).padStart(keyDigits, "0");

export async function noteChange(tx: Transaction, clock: Clock, caller: Caller, change: Change): Promise<void> {
  let last = 0;
  for await (const [key] of tx.rows("audit", { reverse: true, limit: 1 })) last = Number(key);
  const { what, target, reason = "" } = change;
  const row: AuditRow = { at: unixSeconds(clock), ...caller, what, target, reason };
  tx.setRow("audit", keyOf(last + 1), row);
  if (last + 1 > maxAuditRows) tx.deleteRow("audit", keyOf(last + 1 - maxAuditRows));
}

/** Newest first. */
export async function auditRows(reader: TableReader, limit: number): Promise<AuditRow[]> {
  const rows: AuditRow[] = [];
  for await (const [, row] of reader.rows<AuditRow>("audit", { reverse: true, limit })) rows.push(row);
  return rows;
}
