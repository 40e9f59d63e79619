// Layer 4: what answers comments and statuses, and deletions by authors present here. It has a clock of its own: every
// 23–25 h whatever links do, and what is left of a round goes on with the next link. The core does not know these
// events; the shell looks them up in the store, a hundred repositories at a time. Who wrote them is kept for the
// hourly look at deletions (deletions.ts).

import { takeDeletions } from "./deletions.js";
import { indexOf, layerOf, layers, repositoryItem } from "./items.js";
import type { Related } from "./job.js";
import type { Input } from "./messages.js";
import { LayerFour, type Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

/** The next group to ask for; begins a round that is due. */
export function takeRelated(state: SyncState, relay: Relay, step: Step): Related | undefined {
  const nowMs = step.now.monotonicMs;
  if (!relay.layerFour) {
    if (relay.fourDueMs <= nowMs) relay.layerFour = new LayerFour("everything", repositoriesOf(relay), nowMs);
    else if (relay.deletions.dueMs <= nowMs && !relay.authors)
      relay.layerFour = new LayerFour("authors", repositoriesOf(relay), nowMs);
  }
  return takeOfRound(state, relay, step) ?? takeDeletions(state, relay, step);
}

function repositoriesOf(relay: Relay): number[] {
  const repos: number[] = [];
  for (const item of relay.items.keys()) if (layerOf(item) === layers.repositories) repos.push(indexOf(item));
  return repos;
}

/** Asks the store for more when nothing is ready. */
function takeOfRound(state: SyncState, relay: Relay, step: Step): Related | undefined {
  const four = relay.layerFour;
  if (!four) return undefined;
  const ready = four.ready.shift();
  if (ready) return ready;
  const nowMs = step.now.monotonicMs;
  if (four.request !== undefined && nowMs - four.requestedMs < state.config.silenceMs) return undefined;
  if (four.request === undefined && four.after === undefined) {
    const perFilter = state.config.tagsPerFilter;
    const coordinates: string[] = [];
    while (coordinates.length < perFilter && four.repos.length > 0) {
      const repo = state.wanted.repo(four.repos.pop()!);
      if (repo && relay.items.has(repositoryItem(repo.ix))) coordinates.push(repo.coordinate);
    }
    if (coordinates.length === 0) {
      // Done, unless a group is still on its way and may come back.
      const isRunning = relay.jobs.some((job) => job.related && job.related.since === undefined);
      if (!isRunning) endRound(state, relay, four, step);
      return undefined;
    }
    four.coordinates = coordinates;
  }
  four.request = state.nextJob++;
  four.requestedMs = nowMs;
  step.out.push({
    type: "lookUpRelated",
    relay: relay.key,
    request: four.request,
    coordinates: four.coordinates,
    ...(four.after !== undefined && { after: four.after }),
  });
  return undefined;
}

function endRound({ config }: SyncState, relay: Relay, four: LayerFour, step: Step): void {
  relay.layerFour = undefined;
  relay.authors = four.authors;
  if (four.about === "authors") return;
  // From its beginning: a round at a slow relay takes hours, and the next must not come later for it.
  relay.fourDueMs = four.begunMs + config.dailyMinMs + step.random() * (config.dailyMaxMs - config.dailyMinMs);
}

export function onRelated(state: SyncState, relay: Relay, input: Extract<Input, { type: "related" }>): void {
  const four = relay.layerFour;
  if (four?.request !== input.request) return;
  four.request = undefined;
  four.after = input.after;
  for (const author of input.authors) {
    if (four.authors.size < state.config.maxAuthors) four.authors.add(state.sharedAuthor(author));
  }
  if (four.about === "authors") return;
  const size = state.config.tagsPerFilter;
  for (let from = 0; from < input.ids.length; from += size) {
    four.ready.push({ ids: input.ids.slice(from, from + size), authors: [], failures: 0 });
  }
  for (let from = 0; from < input.authors.length; from += size) {
    four.ready.push({ ids: [], authors: input.authors.slice(from, from + size), failures: 0 });
  }
}

/** Back to where it was taken from: it could not be sent, or its link is gone. */
export function putBack(relay: Relay, related: Related): void {
  if (related.since !== undefined) relay.deletions.ready.unshift(related);
  else relay.layerFour?.ready.unshift(related);
}

/** A few times; then it is left to the next round, which begins where this one did. */
export function tryRelatedAgain(state: SyncState, relay: Relay, related: Related): void {
  related.failures += 1;
  if (related.failures <= state.config.failuresUntilNoted) putBack(relay, related);
  else if (related.since !== undefined) relay.deletions.failed = true;
}

/** When layer 4 or the deletions want to be looked at; what is under way is looked at with every answer. */
export function relatedDueMs({ config }: SyncState, { layerFour, deletions, fourDueMs }: Relay): number {
  if (layerFour?.request !== undefined) return layerFour.requestedMs + config.silenceMs;
  const isRunning = layerFour !== undefined || deletions.startedWallMs !== undefined;
  return isRunning ? Number.POSITIVE_INFINITY : Math.min(fourDueMs, deletions.dueMs);
}
