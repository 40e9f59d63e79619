// Layer 4 (daily sync only): what answers comments and statuses, and deletions by authors present here. The core does
// not know these events; the shell looks them up in the store, a hundred repositories at a time.

import { indexOf, layerOf, layers } from "./items.js";
import type { Related } from "./job.js";
import type { Input } from "./messages.js";
import { LayerFour, type Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";

export function beginLayerFour(relay: Relay): void {
  const repos: number[] = [];
  for (const item of relay.items.keys()) if (layerOf(item) === layers.repositories) repos.push(indexOf(item));
  relay.layerFour = new LayerFour(repos);
}

/** The next group to ask for; asks the store for more when there is none. */
export function takeRelated(state: SyncState, relay: Relay, step: Step): Related | undefined {
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
      if (repo) coordinates.push(repo.coordinate);
    }
    if (coordinates.length === 0) {
      // Done, unless a group is still on its way and may come back.
      if (!relay.jobs.some((job) => job.kind === "related")) relay.layerFour = undefined;
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

export function onRelated(state: SyncState, relay: Relay, input: Extract<Input, { type: "related" }>): void {
  const four = relay.layerFour;
  if (four?.request !== input.request) return;
  four.request = undefined;
  four.after = input.after;
  const size = state.config.tagsPerFilter;
  for (let from = 0; from < input.ids.length; from += size) {
    four.ready.push({ ids: input.ids.slice(from, from + size), authors: [], failures: 0 });
  }
  for (let from = 0; from < input.authors.length; from += size) {
    four.ready.push({ ids: [], authors: input.authors.slice(from, from + size), failures: 0 });
  }
}
