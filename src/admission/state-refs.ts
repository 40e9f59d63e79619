// Could git ever apply this list of refs (purgatory.md, "Sanity at admission")? Reads names only; object ids that are
// no object ids are not a fault here: such a state waits and expires (threats.md row 1).

import { isOid } from "../nostr/ids.js";
import type { RepositoryState } from "../nostr/nip34.js";
import { isRefName } from "../nostr/ref-name.js";

const shown = (name: string): string => JSON.stringify(name.slice(0, 100));

/** One sentence about the first thing wrong, or undefined. */
export function refsFault(state: RepositoryState): string | undefined {
  const names = new Set<string>();
  for (const { name } of state.refs) {
    if (!isRefName(name)) return `${shown(name)} is not a name git allows for a ref`;
    if (names.has(name)) return `${shown(name)} is listed twice`;
    names.add(name);
  }
  for (const name of names) {
    for (let slash = name.lastIndexOf("/"); slash > 0; slash = name.lastIndexOf("/", slash - 1)) {
      const directory = name.slice(0, slash);
      if (names.has(directory)) return `${shown(directory)} and ${shown(name)} cannot exist together in git`;
    }
  }
  return undefined;
}

/** Whether every object it names could be one. */
export const hasOnlyObjectIds = (state: RepositoryState): boolean => state.refs.every((ref) => isOid(ref.value));
