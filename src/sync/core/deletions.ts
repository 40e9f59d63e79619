// Deletions and vanish requests (kinds 5 and 62), asked for hourly by author: a deleted comment names an event that no
// live filter of ours asks for. At most a thousand authors a round, the next ones an hour later, each asked from where
// the last pass over all of them began.

import type { Pubkey } from "../../nostr/ids.js";
import { kinds } from "../../nostr/kinds.js";
import { indexOf, layerOf, layers } from "./items.js";
import type { Related } from "./job.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

const asked: readonly number[] = [kinds.deletion, kinds.vanish];

/** The next group of authors; begins a round that is due, and ends one that is answered. */
export function takeDeletions(state: SyncState, relay: Relay, step: Step): Related | undefined {
  const { deletions } = relay;
  if (deletions.startedWallMs === undefined) {
    if (deletions.dueMs > step.now.monotonicMs || !relay.authors) return undefined;
    begin(state, relay, step);
  }
  const ready = deletions.ready.shift();
  if (!ready && !relay.jobs.some((job) => job.related?.since !== undefined)) end(state, relay, step);
  return ready;
}

function begin(state: SyncState, relay: Relay, step: Step): void {
  const { config, wanted } = state;
  const { deletions } = relay;
  deletions.startedWallMs = step.now.wallMs;
  deletions.failed = false;
  if (deletions.at === 0) {
    // Owners of repositories that came since the authors were looked up belong to them.
    const all = new Set<Pubkey>(relay.authors);
    for (const item of relay.items.keys()) {
      const owner = layerOf(item) === layers.repositories ? wanted.repo(indexOf(item))?.owner : undefined;
      if (owner !== undefined) all.add(owner);
    }
    deletions.all = [...all];
    deletions.passWallMs = step.now.wallMs;
  }
  const fromMs = (deletions.sinceWallMs ?? step.now.wallMs - config.dailyMaxMs) - config.lookbackMs;
  const authors = deletions.all.slice(deletions.at, deletions.at + config.deletionAuthorsPerRound);
  for (let from = 0; from < authors.length; from += config.tagsPerFilter) {
    deletions.ready.push({
      ids: [],
      authors: authors.slice(from, from + config.tagsPerFilter),
      failures: 0,
      kinds: asked,
      since: Math.max(0, Math.floor(fromMs / 1000)),
    });
  }
}

/** A round that failed is repeated an hour later; only success moves on. */
function end({ config }: SyncState, relay: Relay, step: Step): void {
  const { deletions } = relay;
  deletions.startedWallMs = undefined;
  deletions.dueMs = step.now.monotonicMs + config.deletionsMs;
  if (deletions.failed) return;
  deletions.at += config.deletionAuthorsPerRound;
  if (deletions.at < deletions.all.length) return;
  deletions.at = 0;
  deletions.sinceWallMs = deletions.passWallMs;
}
