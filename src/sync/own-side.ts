// Our own store as the sync engine asks it: records for negentropy, what counts as held, roots of a repository, and
// what belongs to one (layer 4).

import { type Clock, unixSeconds } from "../base/clock.js";
import { rememberedId } from "../catalogue/remembered.js";
import { type WaitingEntry, waitingKeys } from "../catalogue/waiting.js";
import { parseAddress } from "../nostr/address.js";
import type { NostrEvent } from "../nostr/event.js";
import type { Filter } from "../nostr/filter.js";
import type { EventId, Pubkey } from "../nostr/ids.js";
import { gitDataKinds, kinds, rootKinds } from "../nostr/kinds.js";
import { NegentropyRecords } from "../nostr/negentropy/records.js";
import type { Store } from "../store/port.js";
import type { OwnSide } from "./reconciliation.js";

/** How long a list of all announcements is good for: what came since then is held, and subtracted afterwards. */
const sharedForMs = 60_000;
const isAllAnnouncements = ({ kinds: [kind, ...others] = [], ...rest }: Filter): boolean =>
  kind === kinds.announcement && others.length + Object.keys(rest).length === 0;

export const ownSide = (store: Store, clock: Clock, maxRecords: () => number): OwnSide => ({
  records: ownRecords(store, clock, maxRecords),
  async sort(ids) {
    const missing: EventId[] = [];
    const waiting: EventId[] = [];
    for (const id of ids) {
      if (await store.has(id)) continue;
      const entry = await store.row<WaitingEntry>("purgatory", waitingKeys.entry(id));
      if (entry && gitDataKinds.has(entry.eventKind)) waiting.push(id);
      if (entry) continue;
      // Deleted and superseded ones are known by what the core remembers: an id alone does not say whose it is, and
      // a stranger's deletion must not keep it out (threats.md row 30).
      if (await rememberedId(store, id, unixSeconds(clock))) continue;
      missing.push(id);
    }
    return { missing, waiting };
  },
});

/** All relays are asked for all announcements: one list serves them all, so that a start reads them once. */
function ownRecords(store: Store, clock: Clock, maxRecords: () => number): OwnSide["records"] {
  const read = async (filter: Filter, signal?: AbortSignal): Promise<NegentropyRecords | undefined> => {
    const found = await store.timedIds(filter, maxRecords(), signal);
    return found && new NegentropyRecords(found);
  };
  let shared: ReturnType<typeof read> | undefined;
  return (filter, signal) => {
    if (!isAllAnnouncements(filter)) return read(filter, signal);
    if (shared) return shared;
    // Whoever stops waiting must not take the list from the others: no signal.
    const reading = read(filter);
    shared = reading;
    const forget = (): void => {
      if (shared === reading) shared = undefined;
    };
    reading.then(() => clock.after(sharedForMs, forget), forget);
    return reading;
  };
}

const tagFilters = (names: readonly string[], values: readonly string[]): Filter[] =>
  names.map((name) => ({ tags: new Map([[name, values]]) }));

export async function* rootsOf(store: Store, coordinate: string): AsyncIterable<NostrEvent> {
  const filter: Filter = { kinds: rootKinds, tags: new Map([["a", [coordinate]]]) };
  for await (const page of store.query([filter])) for (const row of page) yield row.event;
}

export interface RelatedPage {
  readonly ids: readonly EventId[];
  readonly authors: readonly Pubkey[];
  readonly after?: string;
}

const valuesAtOnce = 100;
const enoughIds = 5_000;
const maxIdsOfOneRepository = 50_000;

/** Whole repositories, in order, until there are enough ids for one answer; `after` counts those that are done. */
export async function relatedTo(
  store: Store,
  coordinates: readonly string[],
  after: string | undefined,
): Promise<RelatedPage> {
  const ids: EventId[] = [];
  const authors = new Set<Pubkey>();
  let done = Number(after ?? 0);
  while (done < coordinates.length && ids.length < enoughIds) {
    const coordinate = coordinates[done++] as string;
    const owner = parseAddress(coordinate)?.pubkey;
    if (owner) authors.add(owner);
    await collectThread(store, coordinate, ids, authors);
  }
  return { ids, authors: [...authors], ...(done < coordinates.length && { after: String(done) }) };
}

/** What tags the repository, what tags that, and so on. */
async function collectThread(store: Store, coordinate: string, ids: EventId[], authors: Set<Pubkey>): Promise<void> {
  const known = new Set<string>();
  let next: string[] = [];
  const look = async (filters: Filter[]): Promise<void> => {
    for await (const page of store.query(filters)) {
      for (const { event } of page) {
        if (known.has(event.id) || known.size >= maxIdsOfOneRepository) continue;
        known.add(event.id);
        authors.add(event.pubkey);
        if (!rootKinds.includes(event.kind)) ids.push(event.id);
        next.push(event.id);
      }
    }
  };
  await look(tagFilters(["a", "A", "q"], [coordinate]));
  while (next.length > 0) {
    const values = next.slice(0, valuesAtOnce);
    next = next.slice(valuesAtOnce);
    await look(tagFilters(["e", "E", "q"], values));
  }
}
