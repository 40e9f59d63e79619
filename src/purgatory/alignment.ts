// What a state asks of a repository's refs: pure (purgatory.md, "Release" 1; git-http.md, "Push" 3, partial states).
// Only refs/heads/* and refs/tags/* are a state's to decide; every other namespace stays as it is.

import { isOid, isRefName, type Oid, type RefName } from "../nostr/ids.js";
import type { RepositoryState } from "../nostr/nip34.js";

export interface WantedRefs {
  readonly refs: ReadonlyMap<RefName, Oid>;
  /** False: it names something git could never hold; such a state waits and expires (threats.md row 1). */
  readonly wellFormed: boolean;
}

/** The refs a state names, as values that may be handed to git. */
export function wantedRefs(state: RepositoryState): WantedRefs {
  const refs = new Map<RefName, Oid>();
  let wellFormed = true;
  for (const { name, value } of state.refs) {
    if (isRefName(name) && isOid(value)) refs.set(name, value);
    else wellFormed = false;
  }
  return { refs, wellFormed };
}

const isStatesToDecide = (ref: string): boolean => ref.startsWith("refs/heads/") || ref.startsWith("refs/tags/");

export interface Alignment {
  /** Creations and moves first read, deletions after; the git room orders them. */
  readonly updates: readonly { readonly ref: RefName; readonly to: Oid | undefined }[];
  readonly head: RefName | undefined;
  /** Refs the state names whose objects are not here: they are neither set nor deleted. */
  readonly missing: readonly RefName[];
}

/**
 * The changes that make `current` equal to the state, as far as the objects are here.
 * A ref whose new objects are missing keeps its old value: a pushed branch is never rolled back for incompleteness.
 */
export function alignmentOf(
  wanted: ReadonlyMap<RefName, Oid>,
  headBranch: string | undefined,
  current: ReadonlyMap<RefName, { readonly oid: Oid }>,
  isHere: (oid: Oid) => boolean,
): Alignment {
  const updates: { ref: RefName; to: Oid | undefined }[] = [];
  const missing: RefName[] = [];
  for (const [ref, oid] of wanted) {
    if (current.get(ref)?.oid === oid) continue;
    if (isHere(oid)) updates.push({ ref, to: oid });
    else missing.push(ref);
  }
  for (const ref of current.keys()) {
    if (isStatesToDecide(ref) && !wanted.has(ref)) updates.push({ ref, to: undefined });
  }
  const absent = new Set<RefName>(missing.filter((ref) => !current.has(ref)));
  const branches = [...wanted.keys()].filter((ref) => ref.startsWith("refs/heads/") && !absent.has(ref));
  return { updates, head: headOf(branches, headBranch), missing };
}

/** The branch the state names if it has it, else its only branch, else main, master, the first. */
export function headOf(branches: readonly RefName[], named: string | undefined): RefName | undefined {
  const has = (name: string | undefined): RefName | undefined => branches.find((branch) => branch === name);
  if (branches.length === 1) return branches[0];
  return has(named) ?? has("refs/heads/main") ?? has("refs/heads/master") ?? [...branches].sort()[0];
}
