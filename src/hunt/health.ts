// Is a served repository what its governing state says? Two looks: at its refs, without starting git; and at everything
// its refs reach, with git. Tells; repairs nothing. purgatory.md "Repair"; also for `repos fsck`.

import type { CatalogueRow } from "../catalogue/repositories.js";
import { nostrRefEventId } from "../git/decide-push.js";
import type { Repository } from "../git/types.js";
import { type EventId, isOid, type Oid } from "../nostr/ids.js";
import { kinds } from "../nostr/kinds.js";
import { pullRequestOf, stateOf } from "../nostr/nip34.js";
import type { RefName } from "../nostr/ref-name.js";
import { alignmentOf, wantedRefs } from "../purgatory/alignment.js";
import type { Reader } from "../store/port.js";

/** Refs that are not what the governing state says, recorded missing ones of a partial state left out. */
export async function refsAdrift(reader: Reader, repository: Repository, row: CatalogueRow): Promise<RefName[]> {
  const stored = row.governing === null ? undefined : await reader.event(row.governing);
  const state = stored && stateOf(stored.event);
  if (!state) return [];
  const { refs, wellFormed } = wantedRefs(state);
  if (!wellFormed || refs.size === 0) return [];
  const table = await repository.refs();
  const { updates, head } = alignmentOf(refs, state.headBranch, table.refs, () => true);
  const known = new Set<string>(row.partial?.state === row.governing ? row.partial.missingRefs : []);
  const adrift = updates.map(({ ref }) => ref).filter((ref) => !known.has(ref));
  const isHeadAdrift = head !== undefined && table.head !== head && !known.has(head);
  return isHeadAdrift && !adrift.includes(head) ? [...adrift, head] : adrift;
}

/** Values of its refs that do not have everything they reach. Starts git. */
export async function brokenTips(repository: Repository): Promise<Oid[]> {
  const { refs } = await repository.refs();
  const tips = [...new Set([...refs.values()].map(({ oid }) => oid))];
  return [...(await repository.missingObjects(tips, { deep: true }))];
}

export interface LostPullRequest {
  readonly event: EventId;
  readonly tip: Oid;
  readonly clone: readonly string[];
}

/** Served pull requests of a repository under `/prs/` whose tip is one of these. */
export async function pullRequestsAt(
  reader: Reader,
  repository: Repository,
  tips: readonly Oid[],
): Promise<LostPullRequest[]> {
  const found: LostPullRequest[] = [];
  const lost = new Set(tips);
  for (const [ref, { oid: tip }] of (await repository.refs()).refs) {
    const event = lost.has(tip) ? nostrRefEventId(ref) : undefined;
    const stored = event && (await reader.event(event));
    const clone = stored && pullRequestOf(stored.event)?.clone;
    if (clone) found.push({ event, tip, clone });
  }
  return found;
}

const maxPullRequests = 10_000;

/** Served pull requests of a repository that have no ref there. */
export async function lostPullRequests(
  reader: Reader,
  repository: Repository,
  row: CatalogueRow,
): Promise<LostPullRequest[]> {
  const { refs } = await repository.refs();
  const filter = {
    kinds: [kinds.pullRequest, kinds.pullRequestUpdate],
    tags: new Map([["a", [row.address]]]),
  };
  const lost: LostPullRequest[] = [];
  for await (const page of reader.query([filter], { limit: maxPullRequests })) {
    for (const { id, event } of page) {
      const pullRequest = refs.has(`refs/nostr/${id}` as RefName) ? undefined : pullRequestOf(event);
      if (pullRequest && isOid(pullRequest.tip)) {
        lost.push({ event: id, tip: pullRequest.tip, clone: pullRequest.clone });
      }
    }
  }
  return lost;
}
