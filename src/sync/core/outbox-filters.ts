// What an outbox item asks for (grasp.md, GRASP-03): what the participants that write to a relay said there about the
// repository (`a`, `A`, `q` its coordinate) and its roots (`e`, `E`, `q`), and what they say of themselves (0, 10002, 10317).
// Repositories are asked for together, as many as share a filter's authors. The authors keep strangers' spam out. Live
// filters are a help beside the passes, which cover everything: they get what filters the relay's own items leave.

import { groupsOf } from "../../base/collections.js";
import { kinds, type NostrEvent, type Pubkey } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import type { Chunk, Relay, SyncState } from "./core-state.js";
import { historyCapacity, isLong, liveCapacity, textOf, valuesOf } from "./items.js";
import { type Item, indexOf, outboxItem, Query, type Slice } from "./job.js";

/** What participants say of themselves. */
export const participantKinds: readonly number[] = [kinds.profile, kinds.relayList, kinds.graspList];

/** Of one live chunk: by `a`, `A`, `e`, `E` and `q`. */
export const outboxFiltersPerChunk = 5;
/** While a chunk takes the place of another, at most three filters may be open above the budget. */
const filtersKeptFree = outboxFiltersPerChunk - 3;

interface Room {
  readonly values: number;
  readonly authors: number;
}

/** Where a relay counts all values of a filter together, authors and what they refer to share. */
const roomOf = ({ limits }: Relay, values: number): Room =>
  limits.maxFilterValues === undefined
    ? { values, authors: values }
    : { values: Math.max(1, values >> 1), authors: Math.max(1, values >> 1) };

export function authorsOf(relay: Relay, items: readonly Item[]): Pubkey[] {
  const authors = new Set<Pubkey>();
  for (const item of items) for (const author of relay.outbox.get(indexOf(item)) ?? []) authors.add(author);
  return [...authors];
}

function rootsOf({ wanted }: SyncState, items: readonly Item[]): string[] {
  const roots = new Set<number>();
  for (const item of items) for (const root of wanted.repo(indexOf(item))?.roots ?? []) roots.add(root);
  // The most active first: where not all can be live, those are.
  return [...roots]
    .sort((a, b) => wanted.activeSeconds(b) - wanted.activeSeconds(a))
    .flatMap((root) => wanted.rootId(root) ?? []);
}

/** Takes items for one job: as many repositories as have a filter's authors together. */
export function takeOutboxGroup(
  state: SyncState,
  relay: Relay,
  list: Item[],
  isWanted: (item: Item) => boolean,
): Item[] {
  const room = roomOf(relay, historyCapacity(state.config, relay).values);
  const group = new Set<Item>();
  const authors = new Set<Pubkey>();
  for (let item = list.pop(); item !== undefined; item = list.pop()) {
    if (!isWanted(item) || group.has(item)) continue;
    const more = (relay.outbox.get(indexOf(item)) ?? []).filter((author) => !authors.has(author));
    if (group.size > 0 && (authors.size + more.length > room.authors || group.size >= room.values)) {
      list.push(item);
      break;
    }
    group.add(item);
    for (const author of more) authors.add(author);
  }
  return [...group];
}

export function outboxQueries(
  state: SyncState,
  relay: Relay,
  items: readonly Item[],
  since: number | undefined,
): Query[] {
  const room = roomOf(relay, historyCapacity(state.config, relay).values);
  const authors = groupsOf(authorsOf(relay, items), room.authors);
  const coordinates = valuesOf(state.wanted, items);
  const roots = rootsOf(state, items);
  const from = since === undefined ? {} : { since };
  const ofAuthors = (slice: Slice): Slice[] => authors.map((group) => ({ ...slice, authors: group, ...from }));
  const groupsIn = (values: readonly string[]): string[][] => [
    ...groupsOf(
      values.filter((value) => !isLong(state.config, value)),
      room.values,
    ),
    // Some relays refuse them: the others must not suffer.
    ...values.flatMap((value) => (isLong(state.config, value) ? [[value]] : [])),
  ];
  const query = (tag: string, values: readonly string[]): Query[] =>
    values.length === 0
      ? []
      : [
          new Query(
            tag,
            items,
            groupsIn(values).flatMap((group) => ofAuthors({ values: group })),
          ),
        ];
  return [
    ...query("a", coordinates),
    ...query("A", coordinates),
    ...query("q", [...coordinates, ...roots]),
    ...query("e", roots),
    ...query("E", roots),
    new Query(undefined, items, ofAuthors({ values: [], kinds: participantKinds })),
  ];
}

/** Whether a participant's event is one that this relay is asked for. */
export function isFromParticipant(
  { wanted }: SyncState,
  relay: Relay,
  event: NostrEvent,
  coordinates: Iterable<string>,
): boolean {
  if (!relay.outboxAuthors.has(event.pubkey)) return false;
  if (participantKinds.includes(event.kind)) return true;
  for (const coordinate of coordinates) {
    if (relay.items.has(outboxItem(wanted.repos.get(coordinate)?.ix ?? 0))) return true;
  }
  return false;
}

const addsTo = (group: LiveGroup, { authors, roots }: Pick<LiveGroup, "authors" | "roots">, room: Room): boolean => {
  const together = new Set([...group.authors, ...authors]);
  return together.size <= room.authors && group.roots.length + roots.length + group.items.length < room.values;
};

interface LiveGroup {
  items: Item[];
  readonly authors: Set<Pubkey>;
  roots: string[];
}

/** Which items are live together, as many as filters are left for; most participants first. */
export function liveGroups(state: SyncState, relay: Relay, committed: number): Item[][] {
  const capacity = liveCapacity(state.config, relay);
  const room = roomOf(relay, capacity.values);
  const most = Math.floor((capacity.filters - filtersKeptFree - committed) / outboxFiltersPerChunk);
  const groups: LiveGroup[] = [];
  if (!relay.isOutboxLive || most <= 0) return [];
  const ordered = [...relay.outbox].sort(([a, as], [b, bs]) => bs.length - as.length || a - b);
  for (const [ix] of ordered) {
    const item = outboxItem(ix);
    const value = textOf(state.wanted, item);
    if (value === undefined || isLong(state.config, value)) continue;
    const adds = { authors: new Set(authorsOf(relay, [item])), roots: rootsOf(state, [item]) };
    const group = groups.find((one) => addsTo(one, adds, room));
    if (group) {
      group.items.push(item);
      group.roots.push(...adds.roots);
      for (const author of adds.authors) group.authors.add(author);
    } else if (groups.length < most) groups.push({ items: [item], ...adds });
  }
  return groups.map(({ items }) => items);
}

/** The live filters of one chunk, and the bytes of the largest. */
export function outboxLiveFilters(
  state: SyncState,
  relay: Relay,
  chunk: Chunk,
  bounds: Pick<Filter, "limit" | "since">,
): { readonly filters: Filter[]; readonly bytes: number } {
  const room = roomOf(relay, liveCapacity(state.config, relay).values);
  const authors = authorsOf(relay, chunk.items).slice(0, room.authors);
  const coordinates = valuesOf(state.wanted, chunk.items).slice(0, room.values);
  const roots = rootsOf(state, chunk.items).slice(0, Math.max(0, room.values - coordinates.length));
  const filter = (tag: string, values: readonly string[]): Filter[] =>
    values.length === 0 ? [] : [{ authors, tags: new Map([[tag, values]]), ...bounds }];
  const filters = [
    ...filter("a", coordinates),
    ...filter("A", coordinates),
    ...filter("e", roots),
    ...filter("E", roots),
    ...filter("q", [...coordinates, ...roots]),
  ];
  const bytesOf = (values: readonly string[]): number =>
    values.reduce((sum, value) => sum + Buffer.byteLength(value) + 3, 0);
  return { filters, bytes: bytesOf(authors) + bytesOf(coordinates) + bytesOf(roots) };
}
