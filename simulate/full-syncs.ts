// Property 7: no relay is asked for a full sync more often than first, stale, daily and the trouble rule allow; no
// relay gets more than 200 requests a minute outside full syncs, and none refuses more than that, whenever it is.
// A full sync is seen by its first question: all announcements, whatever their time.

import type { Filter } from "../src/nostr/filter.js";
import { hourMs, type SyncConfig, secondMs } from "../src/sync/core/config.js";
import type { Command, Input } from "../src/sync/core/messages.js";
import type { Sighting } from "./sightings.js";

const minute = 60 * 1000;
const maxPerMinute = 200;
/** A repository that is new at a relay has a first sync of its own, which asks as fast as it is answered. */
const firstSyncMs = 2 * minute;
/** After the n-th full sync in a row that met trouble of our own. */
const troubleWaitMs = ({ resyncAfterTroubleMs, maxResyncWaitMs }: SyncConfig, nth: number): number =>
  Math.min(resyncAfterTroubleMs * 2 ** nth, maxResyncWaitMs);

const asksForAllAnnouncements = (filter: Filter): boolean =>
  filter.kinds?.length === 1 &&
  filter.kinds[0] === 30617 &&
  filter.since === undefined &&
  filter.until === undefined &&
  filter.authors === undefined &&
  filter.ids === undefined;

/** The layers after the announcements, whatever their time: those have ended, or failed before. */
const asksForMore = (filter: Filter): boolean =>
  filter.tags !== undefined && filter.since === undefined && filter.until === undefined;

export class FullSyncWatch {
  constructor(
    readonly config: SyncConfig,
    readonly tell: Record<"broken" | "storm", (text: string, nowMs: number) => void>,
  ) {}

  asked(seen: Sighting, command: Extract<Command, { type: "subscribe" | "reconcile" }>, nowMs: number): void {
    const name = command.type === "reconcile" ? command.session : command.subscription;
    const filters = command.type === "reconcile" ? [command.filter] : command.filters;
    if (!name.startsWith("l")) {
      if (filters.some(asksForAllAnnouncements)) this.#question(seen, command.relay, name, nowMs);
      else if (filters.some(asksForMore)) seen.fullSyncs.isAtAnnouncements = false;
    }
    const { isRunning, listedMs, requestsMs } = seen.fullSyncs;
    if (isRunning || nowMs - listedMs < firstSyncMs) return;
    this.#count(requestsMs, `${command.relay} asked`, nowMs);
  }

  #question(seen: Sighting, relay: string, name: string, nowMs: number): void {
    const { fullSyncs } = seen;
    fullSyncs.question = name;
    // The same sync goes on: by another method, or once more after a failure.
    const goesOn = !fullSyncs.isAnswered || fullSyncs.owesAnnouncements;
    fullSyncs.isAnswered = false;
    fullSyncs.isAtAnnouncements = true;
    fullSyncs.owesAnnouncements = false;
    // On another link it begins from the start; on the same one, what failed is no excuse for asking more.
    if (fullSyncs.linkMs > fullSyncs.beganMs) {
      fullSyncs.beganMs = nowMs;
      fullSyncs.isRunning = true;
    }
    if (goesOn) return;
    const sinceMs = nowMs - fullSyncs.lastMs;
    const reason =
      nowMs - fullSyncs.wholeMs >= this.config.syncDailyMinHours * hourMs ? "other" : this.#reasonFor(seen, nowMs);
    if (reason === undefined) {
      const minutes = (sinceMs / minute).toFixed(1);
      this.tell.broken(`${relay} is asked for a full sync ${minutes} min after the last, for no reason`, nowMs);
    }
    fullSyncs.beganMs = nowMs;
    fullSyncs.isRunning = true;
    if (fullSyncs.wasDisturbed) {
      // Called for by a change on our side (lists, a restart): a full sync that was owed before is owed still.
      fullSyncs.wasDisturbed = false;
      return;
    }
    if (reason === "trouble") fullSyncs.resyncs += 1;
    fullSyncs.wholeMs = nowMs;
    fullSyncs.lastMs = nowMs;
    fullSyncs.wasRefused = false;
    fullSyncs.wasTroubled = false;
  }

  #reasonFor({ fullSyncs }: Sighting, nowMs: number): "other" | "trouble" | undefined {
    const staleAfterMs = this.config.syncStaleAfterSecs * secondMs;
    if (fullSyncs.wasDisturbed) return "other";
    // A link that was lost before all was answered and judged; a relay that was out of sight for too long.
    const wasGood = !fullSyncs.wasRefused && !fullSyncs.wasTroubled;
    if (fullSyncs.linkMs > fullSyncs.lastMs && (!wasGood || fullSyncs.gapMs > staleAfterMs)) return "other";
    const waitedMs = nowMs - fullSyncs.troubleMs;
    if (fullSyncs.wasTroubled && waitedMs >= troubleWaitMs(this.config, fullSyncs.resyncs) - minute / 60)
      return "trouble";
    // A catch-up that failed. A sync that is due in a pause of the relay's asks its first question after it.
    const sinceMs = nowMs - fullSyncs.lastMs + this.config.syncRateLimitPauseSecs * secondMs;
    return fullSyncs.wasRefused && sinceMs >= staleAfterMs ? "other" : undefined;
  }

  #count(timesMs: number[], what: string, nowMs: number): void {
    timesMs.push(nowMs);
    if (timesMs.length <= maxPerMinute) return;
    if (timesMs.shift()! > nowMs - minute) {
      timesMs.length = 0;
      this.tell.storm(`${what} more than ${maxPerMinute} times in a minute`, nowMs);
    }
  }

  heard(seen: Sighting, input: Extract<Input, { link: number }>, nowMs: number): void {
    const { fullSyncs } = seen;
    switch (input.type) {
      case "connected":
        fullSyncs.linkMs = nowMs;
        fullSyncs.gapMs = nowMs - fullSyncs.settledMs;
        break;
      case "closed":
        this.lost(seen, nowMs);
        break;
      case "eose":
        if (input.subscription === fullSyncs.question) fullSyncs.isAnswered = true;
        break;
      case "reconciled":
        if (input.session === fullSyncs.question) fullSyncs.isAnswered = true;
        break;
      case "subscriptionClosed":
      case "reconcileFailed":
      case "notice":
        this.failed(seen);
        this.#count(fullSyncs.refusalsMs, `${input.relay} had to refuse`, nowMs);
        break;
    }
  }

  /** Something asked for was not answered. */
  failed({ fullSyncs }: Sighting): void {
    fullSyncs.wasRefused = true;
    fullSyncs.owesAnnouncements ||= fullSyncs.isAtAnnouncements;
  }

  /** The link is gone, or about to be. */
  lost(seen: Sighting, nowMs: number): void {
    const { fullSyncs } = seen;
    if (!seen.connected) return;
    if (isSettled(seen)) fullSyncs.settledMs = nowMs;
    else this.failed(seen);
    fullSyncs.isRunning = false;
  }

  stepEnded(seen: Sighting, nowMs: number): void {
    if (!isSettled(seen)) return;
    if (!seen.fullSyncs.wasTroubled) seen.fullSyncs.resyncs = 0;
    seen.fullSyncs.settledMs = nowMs;
    seen.fullSyncs.isRunning = false;
  }
}

const isSettled = ({ connected, history, sessions, fullSyncs }: Sighting): boolean =>
  connected && fullSyncs.isAnswered && history.size === 0 && sessions.size === 0;
