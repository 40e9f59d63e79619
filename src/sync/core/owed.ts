// Single ids to fetch: those somebody here needs now, and those a relay claimed to have (negentropy) and did not
// deliver. Kept over failed requests and lost links, asked for again a few times, then given up.

import type { EventId } from "../../nostr/ids.js";
import type { Job, Owed } from "./job.js";
import type { Relay } from "./relay.js";
import type { Step, SyncState } from "./state.js";
import { log, tally } from "./telling.js";

/** Those to ask for now. */
export function takeOwed(relay: Relay, nowMs: number): Owed | undefined {
  if (relay.direct.length > 0) return { ids: relay.direct.splice(0), tries: 0, promised: false, dueMs: 0 };
  const due = relay.owed.find(({ dueMs }) => dueMs <= nowMs);
  if (due) relay.owed = relay.owed.filter((other) => other !== due);
  return due;
}

/** When the next are due; those that are due already wait for room, not for time. */
export const owedDueMs = (relay: Relay, nowMs: number): number =>
  relay.owed.reduce((due, { dueMs }) => (dueMs > nowMs ? Math.min(due, dueMs) : due), Number.POSITIVE_INFINITY);

/** The relay said that it has something which did not come. */
export const lacksPromised = ({ gaveUpIds, owed, jobs }: Relay): boolean =>
  gaveUpIds || owed.some(({ promised }) => promised) || jobs.some((job) => job.owed?.promised);

function keep(state: SyncState, relay: Relay, owed: Owed): void {
  const kept = relay.owed.reduce((sum, { ids }) => sum + ids.length, 0);
  const ids = owed.ids.slice(0, Math.max(0, state.config.maxDirectIds - kept));
  if (ids.length > 0) relay.owed.push({ ...owed, ids });
  if (ids.length < owed.ids.length) relay.gaveUpIds = true;
}

/** Asked for in vain: again after a while that grows. */
function askAgainLater(state: SyncState, relay: Relay, { ids, tries, promised }: Owed, step: Step): void {
  const waitMs = state.config.owedDelaysMs[tries];
  if (waitMs !== undefined) {
    keep(state, relay, { ids, tries: tries + 1, promised, dueMs: step.now.monotonicMs + waitMs });
    return;
  }
  relay.gaveUpIds = true;
  log(step, "warn", "ids-given-up", relay, { ids: ids.length });
}

/** The relay answered without these. */
export function onUndelivered(state: SyncState, relay: Relay, job: Job, ids: readonly EventId[], step: Step): void {
  if (ids.length === 0 || job.owed?.promised === false) return;
  if (!job.owed) {
    tally(step, "undelivered_ids", relay, undefined, ids.length);
    job.undelivered += ids.length;
  }
  askAgainLater(state, relay, { ids, tries: job.owed?.tries ?? 0, promised: true, dueMs: 0 }, step);
}

const idsLeft = (job: Job): EventId[] => job.queries.flatMap((query) => query.toFetch);

/** Their request failed. */
export function onOwedFailed(state: SyncState, relay: Relay, job: Job, step: Step): void {
  if (job.owed) askAgainLater(state, relay, { ...job.owed, ids: idsLeft(job) }, step);
}

/** The link is gone: nobody was asked in vain. */
export function putBackOwed(state: SyncState, relay: Relay, job: Job): void {
  if (job.owed) keep(state, relay, { ...job.owed, ids: idsLeft(job), dueMs: 0 });
}
