// What authors have under `/prs/` (git-http.md, "Budgets"; threats.md row 19): counted until the repository goes, and
// together with what they have in other people's repositories. Table "meta", `prs-bytes:<owner>:<identifier>`.

import { type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import type { Pubkey } from "../nostr/ids.js";
import type { TableReader, Transaction } from "../store/port.js";

interface Contribution extends RepositoryName {
  readonly bytes: number;
}

const prefix = "prs-bytes:";
const keyOf = (name: RepositoryName): string => `${prefix}${repositoryKey(name)}`;

export async function bookContribution(tx: Transaction, name: RepositoryName, bytes: number): Promise<void> {
  const { owner, identifier } = name;
  const before = (await tx.row<Contribution>("meta", keyOf(name)))?.bytes ?? 0;
  tx.setRow<Contribution>("meta", keyOf(name), { owner, identifier, bytes: before + bytes });
}

export const forgetContribution = (tx: Transaction, name: RepositoryName): void => tx.deleteRow("meta", keyOf(name));

/** All of them, or one author's. */
export async function contributionsUnderPrs(reader: TableReader, author?: Pubkey): Promise<Contribution[]> {
  const range = { prefix: author === undefined ? prefix : `${prefix}${author}:` };
  const found: Contribution[] = [];
  for await (const [, row] of reader.rows<Contribution>("meta", range)) found.push(row);
  return found;
}

/** The first one behind this repository, in the order of their keys. */
export async function contributionAfter(
  reader: TableReader,
  repositoryKey: string | undefined,
): Promise<Contribution | undefined> {
  const after = repositoryKey === undefined ? {} : { after: `${prefix}${repositoryKey}` };
  for await (const [, row] of reader.rows<Contribution>("meta", { prefix, limit: 1, ...after })) return row;
  return undefined;
}
