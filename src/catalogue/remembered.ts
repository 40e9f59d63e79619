// Table "remembered": what was here or was refused, kept as little more than a name, until a second named in the row.
// Keys: `id:<event id>` (an event that expired in purgatory or was refused by policy; see event-sync.md) and
// `left:<owner>:<identifier>` (a waiting repository whose owner withdrew it: older announcements must not bring it
// back when somebody replays them). Rows past `until` mean nothing; whoever sweeps purgatory removes them.

import type { EventId, Pubkey } from "../nostr/ids.js";
import type { TableReader, Transaction } from "../store/port.js";
import { type RepositoryName, repositoryKey } from "./repositories.js";

export interface RememberedId {
  readonly pubkey: Pubkey;
  readonly kind: number;
  /** `expired`: waited in vain. Anything else is the code of a refusal. */
  readonly reason: string;
  readonly relay: string | null;
  readonly until: number;
}

export interface LeftRepository {
  readonly created_at: number;
  readonly id: EventId;
  readonly until: number;
}

const rememberedKey = (id: EventId): string => `id:${id}`;
const leftKey = (name: RepositoryName): string => `left:${repositoryKey(name)}`;

export async function rememberedId(
  reader: TableReader,
  id: EventId,
  nowSeconds: number,
): Promise<RememberedId | undefined> {
  const row = await reader.row<RememberedId>("remembered", rememberedKey(id));
  return row !== undefined && row.until > nowSeconds ? row : undefined;
}

export const rememberId = (tx: Transaction, id: EventId, row: RememberedId): void =>
  tx.setRow("remembered", rememberedKey(id), row);

export const forgetId = (tx: Transaction, id: EventId): void => tx.deleteRow("remembered", rememberedKey(id));

export async function leftRepository(
  reader: TableReader,
  name: RepositoryName,
  nowSeconds: number,
): Promise<LeftRepository | undefined> {
  const row = await reader.row<LeftRepository>("remembered", leftKey(name));
  return row !== undefined && row.until > nowSeconds ? row : undefined;
}

export const rememberLeft = (tx: Transaction, name: RepositoryName, row: LeftRepository): void =>
  tx.setRow("remembered", leftKey(name), row);

export const forgetLeft = (tx: Transaction, name: RepositoryName): void => tx.deleteRow("remembered", leftKey(name));
