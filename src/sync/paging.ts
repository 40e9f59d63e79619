// Everything a relay answers to a filter, newest first, page by page: for relays that may not know negentropy.

import type { RelayUrl } from "../net/url.js";
import type { NostrEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import { type Conversation, converse, pageEvents, request } from "./conversation.js";
import type { DialParts } from "./dial.js";

export async function* pagesOf(
  url: RelayUrl,
  filter: Filter,
  parts: DialParts,
  signal: AbortSignal,
): AsyncGenerator<readonly NostrEvent[]> {
  const conversation = await converse(url, parts, signal);
  try {
    for await (const page of pages(conversation, filter)) {
      yield page;
      signal.throwIfAborted();
    }
  } finally {
    conversation.close();
  }
}

export async function* pages(conversation: Conversation, filter: Filter): AsyncGenerator<readonly NostrEvent[]> {
  let { until } = filter;
  // Ids of the second at which the next page begins: it is asked for again.
  let seen = new Set<string>();
  for (;;) {
    const page = await request(conversation, { ...filter, ...(until !== undefined && { until }), limit: pageEvents });
    if (page.length === 0) return;
    const fresh = page.filter(({ id }) => !seen.has(id));
    if (fresh.length > 0) yield fresh;
    const oldest = Math.min(...page.map(({ created_at }) => created_at));
    seen = new Set(page.filter(({ created_at }) => created_at === oldest).map(({ id }) => id));
    // A second with more events than a page holds cannot be paged through: what lies before it can.
    until = fresh.length === 0 ? oldest - 1 : oldest;
  }
}
