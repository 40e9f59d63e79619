// One look at what a relay and our store have of the same thing; changes nothing on either side (`sync verify`). By
// negentropy; a relay that does not reconcile is read page by page. Bounded in time and in what is read.

import type { RelayUrl } from "../net/url.js";
import type { Filter } from "../nostr/filter.js";
import type { EventId } from "../nostr/ids.js";
import { type Conversation, converse, OneOffFailure } from "./conversation.js";
import type { DialParts } from "./dial.js";
import { Comparison, type Found } from "./one-off.js";
import { pages } from "./paging.js";
import type { OwnSide } from "./reconciliation.js";

export interface CompareOnce {
  readonly url: RelayUrl;
  readonly filters: readonly Filter[];
  readonly dial: DialParts;
  readonly own: OwnSide;
  readonly maxMs: number;
  readonly signal: AbortSignal;
}

/** `read`: page by page, because the relay does not reconcile. */
export type Compared = Found & { readonly method: "negentropy" | "read" };

const maxRead = 100_000;

export async function compareOnce(options: CompareOnce): Promise<Compared> {
  const { url, filters, dial, own, maxMs, signal } = options;
  const conversation = await converse(url, dial, signal);
  const stop = (): void => conversation.fail("the comparison was ended");
  signal.addEventListener("abort", stop);
  const cancel = dial.clock.after(maxMs, () => conversation.fail(`it took longer than ${maxMs / 1_000} s`));
  const found: Found = { missing: new Set(), waiting: new Set(), peerMissing: new Set() };
  let method: Compared["method"] = "negentropy";
  try {
    for (const filter of filters) {
      const refusal = method === "read" ? undefined : await new Comparison(conversation, own, found).of(filter);
      if (refusal !== undefined) method = "read";
      if (method === "read") await read(conversation, own, filter, signal, found);
    }
    return { ...found, method };
  } finally {
    cancel();
    signal.removeEventListener("abort", stop);
    conversation.close();
  }
}

async function read(
  conversation: Conversation,
  own: OwnSide,
  filter: Filter,
  signal: AbortSignal,
  found: Found,
): Promise<void> {
  const records = await own.records(filter, signal);
  if (!records) throw new OneOffFailure("there is too much here to compare it page by page");
  const here = new Set<EventId>();
  for (let at = 0; at < records.length; at++) here.add(records.id(at));
  let seen = 0;
  for await (const events of pages(conversation, filter)) {
    seen += events.length;
    if (seen > maxRead) throw new OneOffFailure(`the relay has more than ${maxRead} events of it`);
    const others = events.flatMap(({ id }) => (here.delete(id) ? [] : [id]));
    const { missing, waiting } = await own.sort(others);
    for (const id of missing) found.missing.add(id);
    for (const id of waiting) found.waiting.add(id);
  }
  for (const id of here) found.peerMissing.add(id);
}
