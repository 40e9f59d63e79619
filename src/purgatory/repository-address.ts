// From a repository's name in events to its place on disk: the one bridge between the two.

import type { RepositoryName } from "../admission/names.js";
import { asNpub, RepositoryAddress, type RepositoryArea } from "../git/address.js";
import { npubOf } from "../nostr/nip19.js";

export function diskAddress(name: RepositoryName, area: RepositoryArea = "main"): RepositoryAddress {
  const npub = asNpub(npubOf(name.owner));
  if (!npub) throw new Error("a public key has no npub");
  return RepositoryAddress.of(name.owner, npub, name.identifier, area);
}
