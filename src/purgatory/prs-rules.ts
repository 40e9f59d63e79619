// GRASP-06, as wired: which `/prs/` paths the git server answers for, and whose pull requests are not wanted there.

import type { AdmissionLists } from "../catalogue/bans-and-lists.js";
import { isRepositoryBlocked } from "../catalogue/bans-and-lists.js";
import { diskAddress, underPrs } from "../git/address.js";
import type { GitHttpOptions } from "../git/http-types.js";
import type { ServiceName } from "../net/url.js";
import { parseNpub } from "../nostr/nip19.js";
import type { Store } from "../store/port.js";
import type { ContributorRules } from "./contributors.js";
import type { Purgatory } from "./purgatory.js";

export const contributorRules = (
  store: Store,
  services: readonly ServiceName[],
  lists: () => AdmissionLists,
): ContributorRules => ({ services, isBlocked: (name) => isRepositoryBlocked(store, lists(), name) });

/** Announced repositories are served if the catalogue knows them; under `/prs/` every well-formed path is one. */
export const repositoryLookUp =
  (purgatory: Purgatory, grasp06Enable: boolean): GitHttpOptions["lookUp"] =>
  async (npub, identifier, area) => {
    const owner = parseNpub(npub);
    if (!owner) return undefined;
    const name = { owner, identifier };
    if (area === "main") return (await purgatory.lookUp(name)) ? { address: diskAddress(name) } : undefined;
    // No announcement has an empty identifier: there is nothing such a pull request could be for.
    return grasp06Enable && identifier !== ""
      ? { address: diskAddress(underPrs(name)), createOnPush: true }
      : undefined;
  };
