// What each repository lacks, as the last look found it: the one table from which the core is told differences, the
// operator's view is made, and the repositories are found that must be looked at again when an event or an identifier
// changes. Beside it which servers were asked, and the queue of looks, in which each repository stands at most once, a
// few are looked at side by side, and never the same one twice at once.

import { type Clock, unixSeconds } from "../base/clock.js";
import { SetsByKey } from "../base/collections.js";
import {
  catalogueRows,
  type RepositoryName,
  repositoryAddress,
  repositoryKey,
  takesStates,
} from "../catalogue/repositories.js";
import { awaitedUnderPrs, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import { type EventId, kinds, parseAddress } from "../nostr/event.js";
import { announcementOf, type Oid } from "../nostr/nip34.js";
import type { FeedEntry, Store } from "../store/port.js";
import type { Coordinate, FetchResult, HuntInput } from "./core/messages.js";
import { type Found, isNothing, type MissingItem, nothingFound, type Wants } from "./wants.js";

interface LackingRepository {
  readonly name: RepositoryName;
  readonly items: Map<string, MissingItem>;
  readonly servers: Map<string, AskedServer>;
  /** What repair found; a look finds it among the items. */
  found: Found;
  /** As the core was told of them. */
  announcements: string;
  /** Soft states for which every server was asked in vain. */
  readonly soughtInVain: Set<string>;
  /** How often data came, and how much of that the last look has seen. */
  arrivals: number;
  arrivalsSeen: number;
}

export interface AskedServer {
  readonly url: string;
  /** Unix seconds. */
  readonly askedAt: number;
  /** `ok`, or why it did not work: our words, never a remote server's text. */
  readonly answer: string;
  readonly arrived: number;
  readonly refused: number;
}

/** What is known of one repository that lacks objects; for the operator only. */
export interface HuntedRepository {
  readonly address: string;
  readonly missing: readonly { readonly event: string; readonly soft: boolean; readonly ids: readonly Oid[] }[];
  readonly servers: readonly AskedServer[];
  /** Unix seconds; undefined while an attempt goes on. */
  readonly nextAttempt: number | undefined;
}

const maxRemembered = 5_000;
/** More than the URLs a repository may have. */
const maxServers = 32;

export class MissingTable {
  readonly #repositories = new Map<Coordinate, LackingRepository>();
  readonly #byIdentifier = new SetsByKey<string, Coordinate>();
  readonly #byItem = new SetsByKey<string, Coordinate>();
  /** Kept when nothing is missing any more: when its servers were asked last is worth knowing. */
  readonly #servers = new Map<Coordinate, LackingRepository["servers"]>();

  /** `dueMs`: of a job's next attempt, by the monotonic clock. */
  constructor(
    private readonly tell: (input: HuntInput) => void,
    private readonly dueMs: (coordinate: Coordinate) => number | undefined,
    private readonly clock: Clock,
  ) {}

  withIdentifier(identifier: string): RepositoryName[] {
    return this.#names(this.#byIdentifier.get(identifier));
  }

  withItem(id: string): RepositoryName[] {
    return this.#names(this.#byItem.get(id));
  }

  #names(coordinates: ReadonlySet<Coordinate> | undefined): RepositoryName[] {
    return [...(coordinates ?? [])].flatMap((coordinate) => this.#repositories.get(coordinate)?.name ?? []);
  }

  /** Its jobs in the core: its own, and one for each pull request that names servers. None when nothing is missing. */
  jobsOf(name: RepositoryName): string[] {
    const address = repositoryAddress(name);
    const items = [...(this.#repositories.get(address)?.items.values() ?? [])];
    return items.length === 0 ? [] : [address, ...items.flatMap(({ id, clone }) => (clone ? [id] : []))];
  }

  foundIn(name: RepositoryName): Found {
    return this.#repositories.get(repositoryAddress(name))?.found ?? nothingFound;
  }

  /** Repair found this; replaces what it found before. */
  setFound(name: RepositoryName, found: Found): void {
    const address = repositoryAddress(name);
    const known = this.#repositories.get(address);
    if (!known && isNothing(found)) return;
    const lacking = known ?? this.#begin(address, name);
    lacking.found = found;
    lacking.arrivals++;
    this.#endIfWhole(address, lacking);
  }

  /** Data came, or may have come. */
  arrived(name: RepositoryName): void {
    const lacking = this.#repositories.get(repositoryAddress(name));
    if (lacking) lacking.arrivals++;
  }

  /** Tips of pull requests that were not here at the last look, if nothing came since; `seen` when the look has ended. */
  beginLook(name: RepositoryName): { readonly stillMissing: ReadonlySet<Oid>; readonly seen: () => void } {
    const lacking = this.#repositories.get(repositoryAddress(name));
    if (!lacking) return { stillMissing: new Set(), seen: () => undefined };
    const { arrivals, items } = lacking;
    const tips = [...items.values()].flatMap(({ kind, ids }) => (kind === "pull-request" ? ids : []));
    return {
      stillMissing: new Set(lacking.arrivalsSeen === arrivals ? tips : []),
      seen: () => {
        lacking.arrivalsSeen = arrivals;
      },
    };
  }

  /** A look found this. Answers ids of entries that are gone: other repositories may have them too. */
  update(name: RepositoryName, wants: Wants): string[] {
    const coordinate = repositoryAddress(name);
    // Nobody announces a /prs/ repository: there is nowhere to look but at each pull request's own servers.
    const tell = name.area === "prs" ? () => undefined : this.tell;
    const known = this.#repositories.get(coordinate);
    if (!known && wants.items.length === 0) return [];
    const lacking = known ?? this.#begin(coordinate, name);
    const announcements = JSON.stringify(wants.announcements);
    if (announcements !== lacking.announcements) {
      lacking.announcements = announcements;
      tell({ type: "announcements", repository: coordinate, announcements: wants.announcements });
    }
    for (const item of wants.items) {
      const { id, clone, source, soft } = item;
      const before = lacking.items.get(id);
      if (before && isSame(before, item)) continue;
      lacking.items.set(id, item);
      this.#byItem.add(id, coordinate);
      tell({ type: "waiting", repository: coordinate, item });
      const [tip] = item.ids;
      if (clone && tip) this.tell({ type: "pull-request", event: id as EventId, tip, clone, source, soft });
    }
    const wanted = new Set(wants.items.map(({ id }) => id));
    const gone = [...lacking.items.values()].filter(({ id }) => !wanted.has(id));
    for (const { id, clone } of gone) {
      lacking.items.delete(id);
      this.#byItem.remove(id, coordinate);
      if (clone && !this.#byItem.has(id)) this.tell({ type: "pull-request-removed", event: id as EventId });
      tell({ type: "removed", repository: coordinate, id });
    }
    this.#endIfWhole(coordinate, lacking);
    return gone.map(({ id }) => id);
  }

  /** Every server was asked. Answers the repository whose soft states are to be released without what is missing. */
  lookedEverywhere(coordinate: Coordinate): RepositoryName | undefined {
    const lacking = this.#repositories.get(coordinate);
    const sought = [...(lacking?.items.values() ?? [])].filter(({ kind, soft }) => kind === "state" && soft);
    for (const { id } of sought) lacking?.soughtInVain.add(id);
    return sought.length > 0 ? lacking?.name : undefined;
  }

  /** Soft states that still lack what was sought in vain; told once. */
  takeSoughtInVain(name: RepositoryName): Set<EventId> {
    const lacking = this.#repositories.get(repositoryAddress(name));
    const isStillSoft = (id: string): boolean => lacking?.items.get(id)?.soft === true;
    const inVain = new Set([...(lacking?.soughtInVain ?? [])].filter(isStillSoft) as EventId[]);
    lacking?.soughtInVain.clear();
    return inVain;
  }

  asked(name: RepositoryName, url: string, { arrived, refused, failure }: FetchResult): void {
    const servers = this.#repositories.get(repositoryAddress(name))?.servers;
    const counts = { arrived: arrived.length, refused: refused.length };
    const answer: AskedServer = { url, askedAt: unixSeconds(this.clock), answer: failure ?? "ok", ...counts };
    if (servers) keepNewest(servers, url, answer, maxServers);
  }

  /** Who was asked for it since the start, also when nothing is missing now. */
  serversOf(name: RepositoryName): AskedServer[] {
    return [...(this.#servers.get(repositoryAddress(name))?.values() ?? [])];
  }

  all(): HuntedRepository[] {
    return [...this.#repositories.values()].flatMap(({ name }) => this.of(name) ?? []);
  }

  of(name: RepositoryName): HuntedRepository | undefined {
    const address = repositoryAddress(name);
    const { items, servers } = this.#repositories.get(address) ?? {};
    if (!items?.size || !servers) return undefined;
    const dueMs = this.dueMs(address);
    const inSeconds = dueMs === undefined ? undefined : (dueMs - this.clock.monotonicMs()) / 1_000;
    return {
      address,
      missing: [...items.values()].map(({ id, soft, ids }) => ({ event: id, soft, ids })),
      servers: [...servers.values()],
      nextAttempt: inSeconds === undefined ? undefined : Math.ceil(unixSeconds(this.clock) + inSeconds),
    };
  }

  #begin(coordinate: Coordinate, name: RepositoryName): LackingRepository {
    const servers = this.#servers.get(coordinate) ?? new Map();
    keepNewest(this.#servers, coordinate, servers, maxRemembered);
    const lacking: LackingRepository = {
      name,
      items: new Map(),
      servers,
      found: nothingFound,
      announcements: "",
      soughtInVain: new Set(),
      arrivals: 0,
      arrivalsSeen: 0,
    };
    this.#repositories.set(coordinate, lacking);
    this.#byIdentifier.add(name.identifier, coordinate);
    return lacking;
  }

  #endIfWhole(coordinate: Coordinate, { name, items, found }: LackingRepository): void {
    if (items.size > 0 || !isNothing(found)) return;
    this.#repositories.delete(coordinate);
    this.#byIdentifier.remove(name.identifier, coordinate);
    if (name.area !== "prs") this.tell({ type: "announcements", repository: coordinate, announcements: [] });
  }
}

/** The newest last: the first goes when there are too many. */
function keepNewest<T>(kept: Map<string, T>, key: string, value: T, most: number): void {
  kept.delete(key);
  kept.set(key, value);
  const [oldest] = kept.keys();
  if (kept.size > most && oldest !== undefined) kept.delete(oldest);
}

const isSame = (a: MissingItem, b: MissingItem): boolean =>
  a.soft === b.soft && a.kind === b.kind && a.source === b.source && areSame(a.ids, b.ids) && areSame(a.clone, b.clone);

const areSame = (a: readonly string[] = [], b: readonly string[] = []): boolean =>
  a.length === b.length && a.every((text, index) => text === b[index]);

const sideBySide = 4;
const firstRetryMs = 1_000;
const maxRetryMs = 3_600_000;

export class RecheckQueue {
  readonly #line = new Map<string, RepositoryName>();
  readonly #looking = new Set<string>();
  /** How often each one's look failed in a row: no more than there are repositories. */
  readonly #failures = new Map<string, number>();
  #closed = false;
  #whenIdle: (() => void)[] = [];

  constructor(
    private readonly look: (name: RepositoryName) => Promise<void>,
    private readonly onFault: (error: unknown) => void,
    private readonly clock: Clock,
  ) {}

  add(name: RepositoryName): void {
    if (this.#closed) return;
    this.#line.set(repositoryKey(name), name);
    this.#next();
  }

  /** Resolves when nothing is in the line and nothing is being looked at. */
  idle(): Promise<void> {
    if (this.#isIdle) return Promise.resolve();
    return new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#line.clear();
    await this.idle();
  }

  get #isIdle(): boolean {
    return this.#line.size === 0 && this.#looking.size === 0;
  }

  /** A killed git or a lack of descriptors passes; nobody else would look for an hour. */
  #retry(key: string, name: RepositoryName): void {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.clock.after(Math.min(maxRetryMs, firstRetryMs * 2 ** failures), () => this.add(name));
  }

  #next(): void {
    for (const [key, name] of this.#line) {
      if (this.#looking.size >= sideBySide) return;
      if (this.#looking.has(key)) continue;
      this.#line.delete(key);
      this.#looking.add(key);
      void this.look(name)
        .then(
          () => void this.#failures.delete(key),
          (error: unknown) => {
            this.onFault(error);
            this.#retry(key, name);
          },
        )
        .then(() => {
          this.#looking.delete(key);
          this.#next();
          if (!this.#isIdle) return;
          const waiting = this.#whenIdle;
          this.#whenIdle = [];
          for (const resolve of waiting) resolve();
        });
    }
  }
}

export async function* repositoriesToCheck(store: Store): AsyncIterable<RepositoryName> {
  for await (const row of catalogueRows(store)) {
    if (!takesStates(row)) continue;
    const { owner, identifier, partial } = row;
    if (partial !== null || (await hasWaiting(store, row))) yield { owner, identifier };
  }
  yield* awaitedUnderPrs(store);
}

async function hasWaiting(store: Store, name: RepositoryName): Promise<boolean> {
  for (const kind of ["state", "pull-request"] as const) {
    if ((await waitingHints(store, waitingKeys.repositoryKind(name, kind), 1)).length > 0) return true;
  }
  return false;
}

/** Identifiers whose announcements came or went. */
export function announcedIn(entries: readonly FeedEntry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.type === "stored") return announcementOf(entry.event)?.identifier ?? [];
    const address = entry.kind === kinds.announcement && entry.address ? parseAddress(entry.address) : undefined;
    return address?.identifier ?? [];
  });
}
