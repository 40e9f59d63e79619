// From a repository's name in events to its place on disk: the one bridge between the two.

import { type RepositoryName, repositoryAddress, repositoryKey } from "../admission/names.js";
import { asNpub, RepositoryAddress, type RepositoryArea } from "../git/address.js";
import { npubOf } from "../nostr/nip19.js";

/** A repository and where it lies; without an area, among those that are announced. Every RepositoryAddress is one. */
export interface PlacedName extends RepositoryName {
  readonly area?: RepositoryArea;
}

export const underPrs = ({ owner, identifier }: RepositoryName): PlacedName => ({ owner, identifier, area: "prs" });

/** `30617:<owner>:<identifier>`, or `prs:…`: a place as the hunt names it. */
export const placeText = (name: PlacedName): string =>
  name.area === "prs" ? `prs:${name.owner}:${name.identifier}` : repositoryAddress(name);

/** Equal for the same place: the same name under `/prs/` is another repository. */
export const placeKey = (name: PlacedName): string => `${name.area ?? "main"}:${repositoryKey(name)}`;

export function diskAddress(name: PlacedName, area: RepositoryArea = name.area ?? "main"): RepositoryAddress {
  const npub = asNpub(npubOf(name.owner));
  if (!npub) throw new Error("a public key has no npub");
  return RepositoryAddress.of(name.owner, npub, name.identifier, area);
}
