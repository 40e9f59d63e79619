// A repository's refs beside what its governing state signed. Pure.

import type { CatalogueRow } from "../catalogue/repositories.js";
import type { RefTable } from "../git/types.js";
import type { RepositoryState } from "../nostr/nip34.js";
import { wantedRefs } from "../purgatory/alignment.js";

export interface RefDifference {
  readonly ref: string;
  /** null: not there. */
  readonly here: string | null;
  readonly signed: string | null;
  /** The state is recorded as partial and this ref is known to be missing: expected, and looked for. */
  readonly recorded: boolean;
}

export function refDifferences(
  table: RefTable,
  state: RepositoryState,
  partial: CatalogueRow["partial"],
): RefDifference[] {
  const { refs: wanted } = wantedRefs(state);
  const known = new Set(partial?.missingRefs ?? []);
  const differences: RefDifference[] = [];
  for (const [ref, oid] of wanted) {
    const here = table.refs.get(ref)?.oid ?? null;
    if (here !== oid) differences.push({ ref, here, signed: oid, recorded: known.has(ref) });
  }
  for (const [ref, { oid }] of table.refs) {
    const isStates = ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");
    if (isStates && !wanted.has(ref)) differences.push({ ref, here: oid, signed: null, recorded: false });
  }
  return differences;
}

export function differenceText({ ref, here, signed, recorded }: RefDifference): string {
  const short = (oid: string | null): string => (oid === null ? "absent" : oid.slice(0, 12));
  const note = recorded ? " (recorded as missing)" : "";
  return `${ref} is ${short(here)}, the governing state says ${short(signed)}${note}`;
}
