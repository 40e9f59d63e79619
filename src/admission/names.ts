// How repositories are called in keys of the store's tables. Owns the one encoding of identifiers in keys.
// Identifiers are any text (NIP-34), keys are at most 1,000 bytes and use `:` to separate: two identifiers must never
// share a key, and the key of one must never be the prefix of another's (threats.md row 3).

import { createHash } from "node:crypto";
import { type Address, addressText, parseAddress } from "../nostr/address.js";
import type { Pubkey } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";

/** A repository: one owner and one identifier. */
export interface RepositoryName {
  readonly owner: Pubkey;
  readonly identifier: string;
}

const maxPlainKeyBytes = 256;

/**
 * An identifier inside a key: percent-encoded (usual names stay as they are), hashed when that gets long.
 * `%sha256` is never the result of percent-encoding, so the two cannot meet.
 */
export function identifierKey(identifier: string): string {
  if (identifier.length <= maxPlainKeyBytes) {
    const encoded = encodeURIComponent(identifier);
    if (encoded.length <= maxPlainKeyBytes) return encoded;
  }
  return `%sha256${createHash("sha256").update(identifier).digest("hex")}`;
}

/** `<owner hex>:<identifier>`: the key of a repository's catalogue row. */
export const repositoryKey = (name: RepositoryName): string => `${name.owner}:${identifierKey(name.identifier)}`;

/** `30617:<owner hex>:<identifier>`, as events write it. */
export const repositoryAddress = (name: RepositoryName): string =>
  addressText({ kind: kinds.announcement, pubkey: name.owner, identifier: name.identifier });

export function repositoryNamed(address: string): RepositoryName | undefined {
  const parsed = parseAddress(address);
  return parsed?.kind === kinds.announcement ? { owner: parsed.pubkey, identifier: parsed.identifier } : undefined;
}

/** An address of any kind inside a key. */
export const addressKey = (address: Address): string =>
  `${address.kind}:${address.pubkey}:${identifierKey(address.identifier)}`;
