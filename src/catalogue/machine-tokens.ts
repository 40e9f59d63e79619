// Table "tokens": what lets a program of a member in that cannot sign (CI, stock git): `hft_<id>_<secret>`, shown once when it
// is made. Rows are under the id and hold the hash of the whole text, so that a copy of the store opens nothing.

import { createHash, timingSafeEqual } from "node:crypto";
import type { Pubkey } from "../nostr/event.js";
import type { RandomBytes } from "../nostr/keys.js";
import type { TableReader, Transaction } from "../store/port.js";

export const tokenRights = ["read", "push"] as const;
export type TokenRight = (typeof tokenRights)[number];

export interface TokenRow {
  readonly id: string;
  /** SHA-256 of the token, in hex. */
  readonly hash: string;
  /** It opens what this member may see, as long as the key is a member's. */
  readonly member: Pubkey;
  readonly right: TokenRight;
  /** `30617:<owner>:<identifier>`; null: all. */
  readonly repository: string | null;
  /** Unix seconds. */
  readonly since: number;
  /** Unix seconds; null: none. */
  readonly ends: number | null;
  readonly note: string;
}

const shape = /^hft_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
const hashOf = (token: string): Buffer => createHash("sha256").update(token).digest();

/** A token and its row; only the row is kept. */
export function newToken(
  about: Omit<TokenRow, "id" | "hash">,
  random: RandomBytes,
): { readonly token: string; readonly row: TokenRow } {
  const id = Buffer.from(random(6)).toString("hex");
  const token = `hft_${id}_${Buffer.from(random(32)).toString("base64url")}`;
  return { token, row: { ...about, id, hash: hashOf(token).toString("hex") } };
}

export const putToken = (tx: Transaction, row: TokenRow): void => tx.setRow<TokenRow>("tokens", row.id, row);

/** The row of this very token, whether its time is over or not. */
export async function tokenRow(reader: TableReader, token: string): Promise<TokenRow | undefined> {
  const id = shape.exec(token)?.[1];
  const row = id === undefined ? undefined : await reader.row<TokenRow>("tokens", id);
  return row && timingSafeEqual(hashOf(token), Buffer.from(row.hash, "hex")) ? row : undefined;
}

export async function tokenRows(reader: TableReader): Promise<TokenRow[]> {
  const rows: TokenRow[] = [];
  for await (const [, row] of reader.rows<TokenRow>("tokens")) rows.push(row);
  return rows;
}

export const isOver = ({ ends }: TokenRow, nowSeconds: number): boolean => ends !== null && ends <= nowSeconds;
