// What git says of proposals: which of them the default branch has already, whoever said so or not; and what one of them
// changes, against where it began.

import type { Looked } from "../../git/reading/visitor.js";
import type { Oid } from "../../nostr/nip34.js";
import type { Looking } from "../code/looking.js";
import { startPlace } from "../code/paths.js";
import { isOpen, type Thread } from "./thread.js";
import type { RepositoryThreads } from "./thread-index.js";

/** Of open ones, the newest: git is asked about no more. */
const maxAsked = 500;

const known = new WeakMap<readonly Thread[], { readonly head: Oid; readonly proposals: readonly Thread[] }>();

/** All proposals; an open one whose commit the default branch has is merged. */
export async function proposalsOf(looking: Looking, threads: RepositoryThreads): Promise<readonly Thread[]> {
  const { proposals } = threads;
  const head = startPlace(looking.found.table)?.commit;
  if (!head) return proposals;
  const before = known.get(proposals);
  if (before?.head === head) return before.proposals;
  const asked = proposals.filter((one) => isOpen(one) && one.tip).slice(0, maxAsked);
  if (asked.length === 0) {
    known.set(proposals, { head, proposals });
    return proposals;
  }
  const { room, found, visitor } = looking;
  const tips = [...new Set(asked.map(({ tip }) => tip as Oid))];
  const looked = await room.reachedOf(found.repository, head, tips, visitor);
  // Whoever may not start git now, or when git has no time, sees what was signed.
  if (!looked.ok) return proposals;
  const merged = proposals.map((one) =>
    isOpen(one) && one.tip && looked.value.has(one.tip) ? { ...one, status: "done" as const } : one,
  );
  known.set(proposals, { head, proposals: merged });
  return merged;
}

const openCounts = new WeakMap<readonly Thread[], number>();

/** Counted once for each list: every page of the repository shows it. A list never changes in place. */
export function countOpen(threads: readonly Thread[]): number {
  const count = openCounts.get(threads) ?? threads.filter(isOpen).length;
  openCounts.set(threads, count);
  return count;
}

export interface ProposedRange {
  readonly base: Oid;
  readonly tip: Oid;
}

/**
 * From where to where a proposal goes; undefined: its commits are not here, or have nothing in common with the default branch.
 * A merged one is compared with what was there before the merge.
 */
export async function proposedRange(
  { room, found, visitor }: Looking,
  tip: Oid,
  saidBase: Oid | undefined,
): Promise<Looked<ProposedRange | undefined>> {
  const { repository, table } = found;
  const nothing = { ok: true, value: undefined } as const;
  const reach = await room.reach(repository, table, tip, visitor);
  if (!reach.ok) return reach;
  const head = startPlace(table)?.commit;
  if (reach.value === "nothing" || !head) return nothing;
  const usual = await room.mergeBase(repository, head, tip, visitor);
  if (!usual.ok) return usual;
  if (usual.value === undefined) return nothing;
  if (usual.value !== tip) return { ok: true, value: { base: usual.value, tip } };
  const before = await room.beforeMerge(repository, head, tip, visitor);
  if (!before.ok) return before;
  const said = saidBase && (await room.commit(repository, saidBase)) ? saidBase : undefined;
  const parted = before.value ?? said;
  const base = parted && (await room.mergeBase(repository, parted, tip, visitor));
  if (base && !base.ok) return base;
  if (base?.value !== undefined && base.value !== tip) return { ok: true, value: { base: base.value, tip } };
  const [parent] = (await room.commit(repository, tip))?.parents ?? [];
  return parent ? { ok: true, value: { base: parent, tip } } : nothing;
}
