// What the core has been told of each repository, so that it is told differences only; and which servers were asked for
// its objects, for the operator. Owns the indexes from events and identifiers to the repositories that must be looked
// at again when one of them changes.

import { type Clock, unixSeconds } from "../base/clock.js";
import { type RepositoryName, repositoryAddress } from "../catalogue/repositories.js";
import type { EventId, Oid } from "../nostr/ids.js";
import type { Coordinate, FetchResult, HuntInput, WaitingItem } from "./core/messages.js";
import type { Wants } from "./wants.js";

export interface FollowedRepository {
  readonly name: RepositoryName;
  readonly items: Map<string, WaitingItem>;
  readonly servers: AskedServers;
  announcements: string;
  softStates: ReadonlySet<EventId>;
  readonly pullRequests: Map<EventId, string>;
  /** Soft states for which every server was asked in vain. */
  readonly soughtInVain: Set<EventId>;
  /** How often data came, and how much of that the last look has seen. */
  arrivals: number;
  arrivalsSeen: number;
}

const maxRemembered = 5_000;

export class Followed {
  readonly #repositories = new Map<Coordinate, FollowedRepository>();
  readonly #byIdentifier = new Map<string, Set<Coordinate>>();
  readonly #byItem = new Map<string, Set<Coordinate>>();
  /** Kept when nothing is missing any more: when its servers were asked last is worth knowing. */
  readonly #servers = new Map<Coordinate, AskedServers>();

  constructor(private readonly tell: (input: HuntInput) => void) {}

  get(coordinate: Coordinate): FollowedRepository | undefined {
    return this.#repositories.get(coordinate);
  }

  /** Who was asked for it since the start, also when nothing is missing now. */
  serversOf(coordinate: Coordinate): AskedServers | undefined {
    return this.#servers.get(coordinate);
  }

  all(): IterableIterator<[Coordinate, FollowedRepository]> {
    return this.#repositories.entries();
  }

  withIdentifier(identifier: string): RepositoryName[] {
    return this.#names(this.#byIdentifier.get(identifier));
  }

  withItem(id: string): RepositoryName[] {
    return this.#names(this.#byItem.get(id));
  }

  #names(coordinates: ReadonlySet<Coordinate> | undefined): RepositoryName[] {
    return [...(coordinates ?? [])].flatMap((coordinate) => this.#repositories.get(coordinate)?.name ?? []);
  }

  /** Answers ids of entries that are gone: other repositories may have them too. */
  update(name: RepositoryName, wants: Wants): string[] {
    const coordinate = repositoryAddress(name);
    // Nobody announces a /prs/ repository: there is nowhere to look but at each pull request's own servers.
    const tell = name.area === "prs" ? () => undefined : this.tell;
    const known = this.#repositories.get(coordinate);
    if (!known && wants.items.length === 0) return [];
    const followed = known ?? this.#begin(coordinate, name);
    followed.softStates = wants.softStates;
    const announcements = JSON.stringify(wants.announcements);
    if (announcements !== followed.announcements) {
      followed.announcements = announcements;
      tell({ type: "announcements", repository: coordinate, announcements: wants.announcements });
    }
    for (const item of wants.items) {
      const before = followed.items.get(item.id);
      if (before && isSame(before, item)) continue;
      followed.items.set(item.id, item);
      add(this.#byItem, item.id, coordinate);
      tell({ type: "waiting", repository: coordinate, item });
    }
    this.#updatePullRequests(coordinate, followed, wants);
    const wanted = new Set(wants.items.map(({ id }) => id));
    const gone = [...followed.items.keys()].filter((id) => !wanted.has(id));
    for (const id of gone) {
      followed.items.delete(id);
      remove(this.#byItem, id, coordinate);
      tell({ type: "removed", repository: coordinate, id });
    }
    if (followed.items.size === 0) this.#end(coordinate, followed);
    return gone;
  }

  /** Data came, or may have come. */
  arrived(name: RepositoryName): void {
    const followed = this.#repositories.get(repositoryAddress(name));
    if (followed) followed.arrivals++;
  }

  #updatePullRequests(coordinate: Coordinate, followed: FollowedRepository, { pullRequests }: Wants): void {
    const wantedNow = new Set(pullRequests.map(({ event }) => event));
    for (const wanted of pullRequests) {
      const text = JSON.stringify(wanted);
      if (followed.pullRequests.get(wanted.event) === text) continue;
      followed.pullRequests.set(wanted.event, text);
      this.tell({ type: "pull-request", ...wanted });
    }
    for (const event of [...followed.pullRequests.keys()]) {
      if (wantedNow.has(event)) continue;
      followed.pullRequests.delete(event);
      const isWantedElsewhere = [...(this.#byItem.get(event) ?? [])].some((other) => other !== coordinate);
      if (!isWantedElsewhere) this.tell({ type: "pull-request-removed", event });
    }
  }

  #begin(coordinate: Coordinate, name: RepositoryName): FollowedRepository {
    const servers = this.#servers.get(coordinate) ?? new AskedServers();
    // The newest last: the first goes when there are too many.
    this.#servers.delete(coordinate);
    this.#servers.set(coordinate, servers);
    const [oldest] = this.#servers.keys();
    if (this.#servers.size > maxRemembered && oldest !== undefined) this.#servers.delete(oldest);
    const followed: FollowedRepository = {
      name,
      items: new Map(),
      servers,
      announcements: "",
      softStates: new Set(),
      pullRequests: new Map(),
      soughtInVain: new Set(),
      arrivals: 0,
      arrivalsSeen: 0,
    };
    this.#repositories.set(coordinate, followed);
    add(this.#byIdentifier, name.identifier, coordinate);
    return followed;
  }

  #end(coordinate: Coordinate, { name }: FollowedRepository): void {
    this.#repositories.delete(coordinate);
    remove(this.#byIdentifier, name.identifier, coordinate);
    if (name.area !== "prs") this.tell({ type: "announcements", repository: coordinate, announcements: [] });
  }
}

const isSame = (a: WaitingItem, b: WaitingItem): boolean =>
  a.soft === b.soft && a.kind === b.kind && a.source === b.source && sameIds(a.ids, b.ids);

const sameIds = (a: readonly Oid[], b: readonly Oid[]): boolean =>
  a.length === b.length && a.every((id, index) => id === b[index]);

function add(index: Map<string, Set<Coordinate>>, key: string, coordinate: Coordinate): void {
  const set = index.get(key) ?? new Set();
  set.add(coordinate);
  index.set(key, set);
}

function remove(index: Map<string, Set<Coordinate>>, key: string, coordinate: Coordinate): void {
  const set = index.get(key);
  set?.delete(coordinate);
  if (set?.size === 0) index.delete(key);
}

export interface AskedServer {
  readonly url: string;
  /** Unix seconds. */
  readonly askedAt: number;
  /** `ok`, or why it did not work. */
  readonly answer: string;
  readonly arrived: number;
  readonly refused: number;
}

const maxServers = 32;

/** Bounded by the URLs a repository may have; texts of remote servers are not kept, only our words for them. */
class AskedServers {
  readonly #answers = new Map<string, AskedServer>();

  note(url: string, result: FetchResult, askedAt: number): void {
    const { arrived, refused, failure } = result;
    this.#answers.delete(url);
    const counts = { arrived: arrived.length, refused: refused.length };
    this.#answers.set(url, { url, askedAt, answer: failure ?? "ok", ...counts });
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > maxServers && oldest !== undefined) this.#answers.delete(oldest);
  }

  list(): AskedServer[] {
    return [...this.#answers.values()];
  }
}

/** What is known of one repository that lacks objects; for the operator only. */
export interface HuntedRepository {
  readonly address: string;
  readonly missing: readonly { readonly event: string; readonly soft: boolean; readonly ids: readonly Oid[] }[];
  readonly servers: readonly AskedServer[];
  /** Unix seconds; undefined while an attempt goes on. */
  readonly nextAttempt: number | undefined;
}

/** `dueMs`: of the next attempt, by the monotonic clock. */
export function huntedRepository(
  address: string,
  { items, servers }: FollowedRepository,
  dueMs: number | undefined,
  clock: Clock,
): HuntedRepository {
  const inSeconds = dueMs === undefined ? undefined : (dueMs - clock.monotonicMs()) / 1_000;
  return {
    address,
    missing: [...items.values()].map(({ id, soft, ids }) => ({ event: id, soft, ids })),
    servers: servers.list(),
    nextAttempt: inSeconds === undefined ? undefined : Math.ceil(unixSeconds(clock) + inSeconds),
  };
}
