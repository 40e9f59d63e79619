// Everything a relay answers to a filter, newest first, page by page: for relays that may not know negentropy.

import type { RelayUrl } from "../net/url.js";
import { type NostrEvent, parseEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { DialParts } from "./dial.js";
import { type Conversation, converse, OneOffFailure } from "./one-off.js";

const pageEvents = 500;

export async function* pagesOf(
  url: RelayUrl,
  filter: Filter,
  parts: DialParts,
  signal: AbortSignal,
): AsyncGenerator<readonly NostrEvent[]> {
  const conversation = await converse(url, parts, signal);
  try {
    let until: number | undefined;
    // Ids of the second at which the next page begins: it is asked for again.
    let seen = new Set<string>();
    for (;;) {
      signal.throwIfAborted();
      const page = await pageOf(conversation, { ...filter, ...(until === undefined ? {} : { until }) });
      const fresh = page.filter(({ id }) => !seen.has(id));
      if (page.length === 0) return;
      const oldest = Math.min(...page.map(({ created_at }) => created_at));
      if (fresh.length > 0) yield fresh;
      seen = new Set(page.filter(({ created_at }) => created_at === oldest).map(({ id }) => id));
      // A second with more events than a page holds cannot be paged through: what lies before it can.
      until = fresh.length === 0 ? oldest - 1 : oldest;
    }
  } finally {
    conversation.link?.close();
  }
}

async function pageOf(conversation: Conversation, filter: Filter): Promise<NostrEvent[]> {
  const name = conversation.name();
  const events: NostrEvent[] = [];
  await conversation.exchange<void>(
    () => conversation.link?.send(["REQ", name, { ...filter, limit: pageEvents }]),
    (message, done) => {
      if (!("subscription" in message) || message.subscription !== name) return;
      if (message.type === "EVENT") {
        const parsed = parseEvent(message.event);
        if (parsed.ok) events.push(parsed.event);
      } else if (message.type === "CLOSED") conversation.fail(`the relay does not answer: ${message.text}`);
      else done();
    },
  );
  conversation.link?.send(["CLOSE", name]);
  if (events.length > 10 * pageEvents) throw new OneOffFailure("the relay sends more than it was asked for");
  return events;
}
