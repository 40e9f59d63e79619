// What sync learns from our own server (event-sync.md "Following our own relay"): the feed from the beginning of
// history, and announcements that wait in purgatory; and our own store as sync asks it: records for negentropy, what counts
// as held, roots of a repository, what belongs to it (layer 4), and who takes part in it (GRASP-03).

import type { Change } from "../admission/verdict.js";
import { type Clock, unixSeconds } from "../base/clock.js";
import { rememberedId } from "../catalogue/decisions.js";
import { maintainersOf } from "../catalogue/maintainers.js";
import { catalogueRow } from "../catalogue/repositories.js";
import { type WaitingEntry, waitingEntry, waitingEvent, waitingKeys } from "../catalogue/waiting.js";
import {
  addressText,
  type EventId,
  gitDataKinds,
  kinds,
  type NostrEvent,
  type Pubkey,
  parseAddress,
  rootKinds,
  tagValue,
} from "../nostr/event.js";
import { type Filter, readBy } from "../nostr/filter.js";
import { NegentropyRecords } from "../nostr/negentropy/records.js";
import { beginningOf } from "../store/event-beginning.js";
import type { FeedEntry, Store, StoredRow } from "../store/port.js";
import type { SyncConfig } from "./core/config.js";
import type { Input, Participant } from "./core/messages.js";
import { mostActive, namedIn } from "./core/participants.js";
import type { OwnSide } from "./reconciliation.js";

const isFollowed = (kind: number): boolean => kind === kinds.announcement || rootKinds.includes(kind);

/** A stored announcement is hosted unless its newest version has dropped us (grasp.md "Hosted"). */
async function isHosted(store: Store, event: NostrEvent): Promise<boolean> {
  const row = await catalogueRow(store, { owner: event.pubkey, identifier: tagValue(event, "d") ?? "" });
  return row?.status !== "leaving";
}

/** Of history announcements and roots; of what comes later everything, because a refused event may refer to it. */
async function inputOf(store: Store, entry: FeedEntry, isReplaying: boolean): Promise<Input | undefined> {
  if (entry.type === "stored") {
    const { event } = entry;
    if (event.kind === kinds.announcement) {
      return { type: "accepted", event, hosted: await isHosted(store, event) };
    }
    return !isReplaying || rootKinds.includes(event.kind) ? { type: "accepted", event } : undefined;
  }
  const { id, kind, cause, address } = entry;
  // With a state's end an older one may be the newest.
  const isEndOfState = kind === kinds.state && !isReplaying;
  if (!isFollowed(kind) && !isEndOfState) return undefined;
  const isAddressed = address !== undefined && (kind === kinds.announcement || kind === kinds.state);
  return { type: "removed", id, cause, ...(isAddressed && { address }) };
}

/** Stored announcements and roots, and what is removed, in the feed's order. One path for start, new repositories, restarts. */
export class OwnFeed {
  /** Everything up to this number was told. */
  #told = 0;
  #historyEnds: number | undefined;

  /** `replayed` is called once, when history has been told. */
  constructor(
    private readonly store: Store,
    private readonly tell: (input: Input) => void,
    private readonly replayed: () => void,
  ) {}

  /** Ends when the signal aborts or the store closes. Called again after it failed, it goes on where it was. */
  async follow(signal: AbortSignal): Promise<void> {
    const { store } = this;
    if (this.#historyEnds === undefined) {
      this.#historyEnds = store.position;
      if (this.#historyEnds === 0) this.replayed();
    }
    for await (const page of store.feed(this.#told, signal)) {
      if (signal.aborted) return;
      for (const entry of page) {
        const input = await inputOf(store, entry, entry.seq <= this.#historyEnds);
        if (signal.aborted) return;
        if (input) this.tell(input);
        const wasReplaying = this.#told < this.#historyEnds;
        this.#told = entry.seq;
        if (wasReplaying && this.#told >= this.#historyEnds) this.replayed();
      }
      // A long history must not keep everybody else waiting.
      await new Promise<void>((go) => setImmediate(go));
    }
  }
}

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

const nobody: ReadonlySet<Pubkey> = new Set();

/** All relays are asked for all announcements: one list serves them all, so that a start reads them once. */
function ownRecords(store: Store, clock: Clock, maxRecords: () => number): OwnSide["records"] {
  const read = async (filter: Filter, signal?: AbortSignal): Promise<NegentropyRecords | undefined> => {
    // Ids go to the other relay, which learns nothing of private events.
    const found = await store.timedIds(readBy(filter, nobody), maxRecords(), signal);
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

interface RelatedPage {
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
    await walkThread(store, coordinate, ({ id, pubkey, kind }) => {
      authors.add(pubkey);
      if (!rootKinds.includes(kind)) ids.push(id);
    });
  }
  return { ids, authors: [...authors], ...(done < coordinates.length && { after: String(done) }) };
}

/** What tags the repository, what tags that, and so on: each once. Strangers decide how long it is, so no text is read here. */
async function walkThread(store: Store, coordinate: string, meet: (row: StoredRow) => void): Promise<void> {
  const known = new Set<string>();
  let next: string[] = [];
  const look = async (filters: Filter[]): Promise<void> => {
    for await (const page of store.query(filters, { pageRows: 100, passingRows: true })) {
      for (const row of page) {
        const { id } = row;
        if (known.has(id) || known.size >= maxIdsOfOneRepository) continue;
        known.add(id);
        meet(row);
        next.push(id);
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

/** Who takes part in a repository, as many as are followed, and their relay lists as far as they are stored here. */
export async function participantsOf(
  store: Store,
  coordinate: string,
  { maxParticipants, maxNamedPerRoot }: Pick<SyncConfig, "maxParticipants" | "maxNamedPerRoot">,
): Promise<{ readonly participants: readonly Participant[]; readonly lists: readonly NostrEvent[] }> {
  const name = parseAddress(coordinate);
  if (!name) return { participants: [], lists: [] };
  const found = new Map<Pubkey, Participant>();
  const note = (one: Participant): void => {
    const [both] = mostActive([one, ...(found.has(one.pubkey) ? [found.get(one.pubkey)!] : [])], 1);
    found.set(one.pubkey, both!);
  };
  await walkThread(store, coordinate, (row) => {
    note({ pubkey: row.pubkey, role: "author", activeSeconds: row.created_at });
    const root = rootKinds.includes(row.kind) ? beginningOf(row) : undefined;
    if (!root) return;
    for (const named of namedIn(root, maxNamedPerRoot)) note({ pubkey: named, role: "named", activeSeconds: 0 });
  });
  const maintainers = await maintainersOf(store, { owner: name.pubkey, identifier: name.identifier });
  for (const pubkey of maintainers) note({ pubkey, role: "maintainer", activeSeconds: 0 });
  const participants = mostActive(found.values(), maxParticipants);
  const lists: NostrEvent[] = [];
  for (const { pubkey } of participants) {
    const list = await store.latest({ kind: kinds.relayList, pubkey, identifier: "" });
    if (list) lists.push(list.event);
  }
  return { participants, lists };
}

const addressOfEntry = (entry: WaitingEntry) => ({
  kind: kinds.announcement,
  pubkey: entry.pubkey,
  identifier: entry.identifier,
});

/**
 * Announcements in purgatory, as the core follows them (event-sync.md "Following our own relay" 3): read from the table
 * at start, then from verdicts and expiries as they happen. A look now and then finds what ended another way.
 */
export class WaitingAnnouncements {
  readonly #byCoordinate = new Map<string, WaitingEntry>();
  readonly #coordinates = new Map<EventId, string>();

  constructor(
    private readonly store: Store,
    private readonly tell: (input: Input) => void,
  ) {}

  get count(): number {
    return this.#byCoordinate.size;
  }

  async open(): Promise<void> {
    for await (const [, entry] of this.store.rows<WaitingEntry>("purgatory", { prefix: "e:" })) this.#note(entry);
  }

  /** Rows were written. */
  decided(changes: readonly Change[]): void {
    const ended: EventId[] = [];
    for (const change of changes) {
      if (change.type === "hold") this.#note(change.entry);
      else if (change.type === "unhold" && change.cause !== "replaced") ended.push(change.id);
    }
    for (const id of ended) this.#gone(this.#coordinates.get(id));
  }

  /** The feed comes later than verdicts: what waits is still wanted when it tells of an earlier version's end. */
  fromFeed(input: Input): void {
    this.tell(input);
    const waiting = input.type === "removed" ? this.#byCoordinate.get(input.address ?? "") : undefined;
    if (waiting) this.#note(waiting);
  }

  /** What waits under these ids may have ended: by a release, or by the operator. */
  async recheck(ids: readonly EventId[]): Promise<void> {
    for (const id of ids) {
      const coordinate = this.#coordinates.get(id);
      const entry = coordinate === undefined ? undefined : this.#byCoordinate.get(coordinate);
      if (coordinate === undefined || !entry) continue;
      if (await waitingEntry(this.store, entry.id)) continue;
      if (this.#byCoordinate.get(coordinate) !== entry) continue;
      // Released: the feed has said so.
      if (await this.store.latest(addressOfEntry(entry))) this.#drop(coordinate);
      else this.#gone(coordinate);
    }
  }

  #note(entry: WaitingEntry): void {
    if (entry.kind !== "announcement") return;
    const coordinate = addressText(addressOfEntry(entry));
    this.#drop(coordinate);
    this.#byCoordinate.set(coordinate, entry);
    this.#coordinates.set(entry.id, coordinate);
    this.tell({ type: "waiting", event: waitingEvent(entry) });
  }

  #gone(coordinate: string | undefined): void {
    if (coordinate !== undefined && this.#drop(coordinate)) this.tell({ type: "unwaiting", coordinate });
  }

  #drop(coordinate: string): boolean {
    const entry = this.#byCoordinate.get(coordinate);
    if (entry) this.#coordinates.delete(entry.id);
    return this.#byCoordinate.delete(coordinate);
  }
}
