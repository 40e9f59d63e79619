// Property 7: no relay is asked for a full sync more often than first, stale, daily and the trouble rule allow; no
// relay gets more than 200 requests a minute outside full syncs, and none refuses more than that, whenever it is.
// A full sync is seen by its first question: all announcements, whatever their time.

import type { Filter } from "../src/nostr/filter.js";
import type { SyncConfig } from "../src/sync/core/config.js";
import type { Command, Input } from "../src/sync/core/messages.js";
import type { Sighting } from "./sightings.js";

const minute = 60 * 1000;
const maxPerMinute = 200;
/** After 2, 4, 8, 16 and 32 min; a success in between begins anew. */
const maxTroubledPerHour = 8;

const asksForAllAnnouncements = (filter: Filter): boolean =>
  filter.kinds?.length === 1 &&
  filter.kinds[0] === 30617 &&
  filter.since === undefined &&
  filter.until === undefined &&
  filter.authors === undefined &&
  filter.ids === undefined;

export class FullSyncWatch {
  constructor(
    readonly config: SyncConfig,
    readonly tell: Record<"broken" | "storm", (text: string, nowMs: number) => void>,
  ) {}

  asked(seen: Sighting, command: Extract<Command, { type: "subscribe" | "reconcile" }>, nowMs: number): void {
    const { fullSyncs } = seen;
    const name = command.type === "reconcile" ? command.session : command.subscription;
    const filters = command.type === "reconcile" ? [command.filter] : command.filters;
    if (!name.startsWith("l") && filters.some(asksForAllAnnouncements))
      this.#question(seen, command.relay, name, nowMs);
    // What a first sync finds is asked for a moment after it.
    if (fullSyncs.isRunning || nowMs - fullSyncs.lastMs < 2 * minute) return;
    this.#count(fullSyncs.requestsMs, `${command.relay} asked`, nowMs);
  }

  #question(seen: Sighting, relay: string, name: string, nowMs: number): void {
    const { fullSyncs } = seen;
    fullSyncs.question = name;
    // The same sync goes on: by another method, or once more after a failure.
    const goesOn = !fullSyncs.isAnswered || fullSyncs.owesAnnouncements;
    fullSyncs.isAnswered = false;
    fullSyncs.isAtAnnouncements = true;
    fullSyncs.owesAnnouncements = false;
    if (goesOn) return;
    const sinceMs = nowMs - fullSyncs.lastMs;
    const reason = nowMs - fullSyncs.wholeMs >= this.config.dailyMinMs ? "other" : this.#reasonFor(seen, sinceMs);
    if (reason === undefined) {
      const minutes = (sinceMs / minute).toFixed(1);
      this.tell.broken(`${relay} is asked for a full sync ${minutes} min after the last, for no reason`, nowMs);
    }
    if (reason === "trouble") fullSyncs.troubledMs = [...fullSyncs.troubledMs, nowMs].slice(-maxTroubledPerHour);
    if (!fullSyncs.wasDisturbed) fullSyncs.wholeMs = nowMs;
    fullSyncs.lastMs = nowMs;
    fullSyncs.isRunning = true;
    fullSyncs.wasRefused = false;
    fullSyncs.wasTroubled = false;
    fullSyncs.wasDisturbed = false;
  }

  #reasonFor({ fullSyncs }: Sighting, sinceMs: number): "other" | "trouble" | undefined {
    const { staleAfterMs } = this.config;
    if (fullSyncs.wasDisturbed) return "other";
    // A link that was lost before all was answered and judged; a relay that was out of sight for too long.
    const wasGood = !fullSyncs.wasRefused && !fullSyncs.wasTroubled;
    if (fullSyncs.linkMs > fullSyncs.lastMs && (!wasGood || fullSyncs.gapMs > staleAfterMs)) return "other";
    const hourAgoMs = fullSyncs.lastMs + sinceMs - 60 * minute;
    const lately = fullSyncs.troubledMs.filter((atMs) => atMs > hourAgoMs).length;
    if (fullSyncs.wasTroubled && sinceMs >= 1.9 * minute && lately < maxTroubledPerHour) return "trouble";
    // A catch-up that failed.
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
        // What the link before did not end goes on.
        fullSyncs.requestsMs = [];
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
    seen.fullSyncs.settledMs = nowMs;
    seen.fullSyncs.isRunning = false;
  }
}

const isSettled = ({ connected, history, sessions, fullSyncs }: Sighting): boolean =>
  connected && fullSyncs.isAnswered && history.size === 0 && sessions.size === 0;
