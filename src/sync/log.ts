// The core's log codes as sentences. Levels are the core's (event-sync.md "logs").

import type { Logger } from "../config/logging.js";
import type { Command } from "./core/messages.js";

const sentences: Readonly<Record<string, string>> = {
  connected: "connected to a relay",
  "connect-failed": "a relay could not be reached",
  "link-lost": "the connection to a relay was lost",
  "stood-still": "this process stood still, or the clock jumped: every link is made anew",
  "stale-reset": "away for too long: everything is compared anew",
  "daily-sync": "the daily comparison begins",
  resync: "what our own trouble lost is fetched with a full comparison",
  "daily-summary": "the daily comparison found events that live should have brought",
  "startup-summary": "history brought new events",
  "reconnect-summary": "a reconnect found events that live should have brought",
  "peer-missing-events": "the relay lacks events that are stored here",
  "live-event": "a live event",
  "live-consolidated": "live filters were made fewer and larger",
  "relay-dropped": "nothing needs this relay any more",
  "relay-gave-way": "a relay gave its place to one that found none",
  "relay-dead": "a relay has failed for a day: one try a day from now on",
  "relay-naughty": "a relay is plainly broken and left alone for a while",
  "negentropy-fallback": "a relay does not reconcile: history is read page by page",
  "repository-budget-hit": "a repository has brought its share of new events for today",
  "author-budget-hit": "an author has brought as many announcements and states under one identifier as a day takes",
  "relay-budget-hit": "a relay has brought its share of new events for today",
  "mostly-refused": "nearly everything a relay sent was refused: it is paused",
  unpageable: "a relay's pages cannot show all events of one second",
  "value-refused": "a relay refuses one value of a filter; the others go on without it",
  "batch-confirmed": "a batch of history is complete",
  "batch-failed": "a batch of history failed and will be tried again",
  "catch-up-failed": "catching up failed",
  "layer-four-failed": "looking for replies and deletions failed",
  "direct-failed": "fetching events by id failed",
};

export function logSync(logger: Logger, { level, code, relay, fields }: Extract<Command, { type: "log" }>): void {
  logger[level]({ code, ...(relay !== undefined && { relay }), ...fields }, sentences[code] ?? code);
}
