// How far we are with participants' own relays, for gauges, pages and the simulator (outbox.ts).

import type { SyncState } from "./core-state.js";
import { outboxItem, phaseOf, phases } from "./job.js";
import type { Repo } from "./wanted.js";

/** What is gathered for a repository. Complete: every relay has answered, or cannot be asked at the moment. */
export interface OutboxStanding {
  readonly participants: number;
  readonly relays: number;
  readonly isComplete: boolean;
}

export function outboxStanding(state: SyncState, repo: Repo): OutboxStanding | undefined {
  if (!state.participants.knows(repo)) return undefined;
  const isAnswered = (ix: number): boolean => {
    const relay = state.byIx[ix];
    if (!relay || state.ignored.has(relay.key)) return true;
    if (phaseOf(relay.items.get(outboxItem(repo.ix))) === phases.confirmed) return true;
    return relay.status !== "connected" && state.health.of(relay.key).failures > 0;
  };
  const isLookedUp = repo.participantsMs > Number.NEGATIVE_INFINITY;
  return {
    participants: state.participants.of(repo).length,
    relays: repo.outbox.size,
    isComplete: isLookedUp && [...repo.outbox].every(isAnswered),
  };
}

export function outboxSnapshot(state: SyncState) {
  const { participants, outbox, lists } = state;
  let incomplete = 0;
  for (const repo of participants.repos) if (!outboxStanding(state, repo)?.isComplete) incomplete += 1;
  const relays = [...outbox.asked];
  return {
    repositories: participants.repoCount,
    participants: participants.authorCount,
    lists: lists.counts,
    relays: relays.length,
    connected: relays.filter(({ status }) => status === "connected").length,
    live: relays.filter(({ isOutboxLive }) => isOutboxLive).length,
    /** Relays that only participants, index lists or the search for a single event name. */
    unlisted: outbox.unlisted.size,
    incomplete,
    unplaced: outbox.unplaced.size,
  };
}

export type OutboxSnapshot = Readonly<ReturnType<typeof outboxSnapshot>>;
