// Wanted (the seeds' RepoSyncIndex): coordinate → listed relays, known roots, level. It grows and shrinks with what
// the server's own feed and purgatory report (spec "Following our own relay" 1–3) and knows nothing of connections.
// Coordinates and root ids are kept once and named by small numbers everywhere else. What changed since the last
// window is noted; a number that became free is used again only after that window was applied.

import { SetsByKey } from "../../base/collections.js";
import { normalRelayUrl, type RelayUrl, servicePart } from "../../net/url.js";
import {
  addressText,
  type EventId,
  kinds,
  type NostrEvent,
  type Pubkey,
  rootKinds,
  tagValue,
} from "../../nostr/event.js";
import { type Announcement, announcementOf, repositoriesTagged } from "../../nostr/nip34.js";
import type { SyncConfig } from "./config.js";
import type { Account } from "./messages.js";

export type Level = "full" | "state-only";

export interface Repo {
  readonly ix: number;
  readonly coordinate: string;
  readonly owner: Pubkey;
  readonly identifier: string;
  level: Level;
  announcementId: EventId;
  listed: readonly ListedRelay[];
  readonly roots: Set<number>;
  /** Relays (by number) whose targets hold this repo, kept by targets.ts. */
  readonly placed: Set<number>;
  /** The level targets.ts last applied. */
  placedLevel: Level;
  /** Relays (by number) that are asked what its participants wrote there, kept by outbox.ts. */
  readonly outbox: Set<number>;
  /** When its participants were last looked up. */
  participantsMs: number;
  /** Its announcement says so: it takes no part in what reaches beyond its own relays. */
  isPrivate: boolean;
  gone: boolean;
}

export interface Changes {
  readonly repos: Set<Repo>;
  /** root number → repo, for roots that joined a repo. */
  readonly rootsAdded: { readonly root: number; readonly repo: Repo }[];
  readonly rootsRemoved: { readonly root: number; readonly repos: readonly Repo[] }[];
}

export class Wanted {
  readonly repos = new Map<string, Repo>();
  readonly #byIx: (Repo | undefined)[] = [undefined];
  readonly #freeRepos: number[] = [];
  readonly #byIdentifier = new SetsByKey<string, Repo>();

  readonly #rootIx = new Map<EventId, number>();
  readonly #rootIds: (EventId | undefined)[] = [];
  readonly #rootRepos: (Repo | readonly Repo[] | undefined)[] = [];
  /** Seconds of the newest event known to belong to the root: decides who stays live when filters are short. */
  readonly #rootActiveSeconds: number[] = [];
  readonly #freeRoots: number[] = [];

  #earlyRoots = new Map<string, Set<EventId>>();
  #earlyCount = 0;
  replayEnded = false;
  #changes: Changes = { repos: new Set(), rootsAdded: [], rootsRemoved: [] };

  constructor(readonly config: SyncConfig) {}

  get rootCount(): number {
    return this.#rootIx.size;
  }

  /** For the simulator's bound on memory: tables, free places included. */
  get tableSizes(): { repos: number; roots: number; early: number } {
    return { repos: this.#byIx.length, roots: this.#rootIds.length, early: this.#earlyCount };
  }

  repo(ix: number): Repo | undefined {
    return this.#byIx[ix];
  }

  withIdentifier(identifier: string): ReadonlySet<Repo> | undefined {
    return this.#byIdentifier.get(identifier);
  }

  /** The repositories whose events count for an account, as far as it decides about them. */
  reposOf(account: Account): Iterable<Repo> {
    if ("identifier" in account) return this.withIdentifier(account.identifier) ?? [];
    const repo = this.repos.get(account.coordinate);
    return repo ? [repo] : [];
  }

  rootNumber(id: string): number | undefined {
    return this.#rootIx.get(id as EventId);
  }

  rootId(root: number): EventId | undefined {
    return this.#rootIds[root];
  }

  reposOfRoot(root: number): readonly Repo[] {
    const repos = this.#rootRepos[root];
    return repos === undefined ? [] : "ix" in repos ? [repos] : repos;
  }

  activeSeconds(root: number): number {
    return this.#rootActiveSeconds[root] ?? 0;
  }

  noteActivity(root: number, seconds: number): void {
    if (seconds > (this.#rootActiveSeconds[root] ?? 0)) this.#rootActiveSeconds[root] = seconds;
  }

  /** True when something changed that the next window must apply. */
  get changed(): boolean {
    const { repos, rootsAdded, rootsRemoved } = this.#changes;
    return repos.size > 0 || rootsAdded.length > 0 || rootsRemoved.length > 0;
  }

  takeChanges(): Changes {
    const changes = this.#changes;
    this.#changes = { repos: new Set(), rootsAdded: [], rootsRemoved: [] };
    return changes;
  }

  /** After targets.ts has taken everything out: the numbers may be used again. */
  release(changes: Changes): void {
    for (const { root } of changes.rootsRemoved) this.#freeRoots.push(root);
    for (const repo of changes.repos) {
      if (!repo.gone) continue;
      this.#byIx[repo.ix] = undefined;
      this.#freeRepos.push(repo.ix);
    }
  }

  /** An announcement that is hosted (`full`) or waits (`state-only`). Returns the repo when it is new here. */
  announce(event: NostrEvent, level: Level): Repo | undefined {
    const announcement = announcementOf(event);
    if (!announcement) return undefined;
    const { owner, identifier } = announcement;
    const coordinate = addressText({ kind: kinds.announcement, pubkey: owner, identifier });
    const known = this.repos.get(coordinate);
    // A waiting version never takes a served repository down a level; purgatory does not hold such versions.
    if (known && known.level === "full" && level === "state-only") return undefined;
    const max = level === "full" ? this.config.syncMaxRelaysPerRepository : this.config.syncMaxRelaysPerWaiting;
    const listed = relaysOf(announcement, this.config.ownServices, max);
    const isPrivate = tagValue(event, "private") === "true";
    if (known) {
      Object.assign(known, { level, listed, isPrivate, announcementId: event.id });
      this.#changes.repos.add(known);
      return undefined;
    }
    const ix = this.#freeRepos.pop() ?? this.#byIx.length;
    const repo: Repo = {
      ix,
      coordinate,
      owner,
      identifier,
      level,
      announcementId: event.id,
      listed,
      roots: new Set(),
      placed: new Set(),
      placedLevel: level,
      outbox: new Set(),
      participantsMs: Number.NEGATIVE_INFINITY,
      isPrivate,
      gone: false,
    };
    this.#byIx[ix] = repo;
    this.repos.set(coordinate, repo);
    this.#byIdentifier.add(identifier, repo);
    this.#changes.repos.add(repo);
    for (const id of this.#earlyRoots.get(coordinate) ?? []) this.#join(id, repo, event.created_at);
    return repo;
  }

  /** A root event counts for each wanted coordinate it tags. */
  addRoot(event: NostrEvent): void {
    if (!rootKinds.includes(event.kind)) return;
    for (const address of repositoriesTagged(event)) {
      const coordinate = addressText(address);
      const repo = this.repos.get(coordinate);
      if (repo) this.#join(event.id, repo, event.created_at);
      else if (!this.replayEnded && this.#earlyCount < this.config.maxEarlyRoots) {
        const early = this.#earlyRoots.get(coordinate) ?? new Set();
        if (!early.has(event.id)) this.#earlyCount += 1;
        this.#earlyRoots.set(coordinate, early.add(event.id));
      }
    }
  }

  #join(id: EventId, repo: Repo, seconds: number): void {
    let root = this.#rootIx.get(id);
    if (root === undefined) {
      root = this.#freeRoots.pop() ?? this.#rootIds.length;
      this.#rootIx.set(id, root);
      this.#rootIds[root] = id;
      this.#rootRepos[root] = repo;
      this.#rootActiveSeconds[root] = seconds;
    } else {
      const repos = this.reposOfRoot(root);
      if (repos.includes(repo)) return;
      this.#rootRepos[root] = repos.length === 0 ? repo : [...repos, repo];
    }
    repo.roots.add(root);
    this.#changes.rootsAdded.push({ root, repo });
  }

  removeRoot(id: EventId): void {
    const root = this.#rootIx.get(id);
    if (root === undefined) {
      if (!this.replayEnded) for (const early of this.#earlyRoots.values()) if (early.delete(id)) this.#earlyCount -= 1;
      return;
    }
    const repos = this.reposOfRoot(root);
    for (const repo of repos) repo.roots.delete(root);
    this.#dropRoot(root, repos);
  }

  #dropRoot(root: number, repos: readonly Repo[]): void {
    const id = this.#rootIds[root];
    if (id !== undefined) this.#rootIx.delete(id);
    this.#rootIds[root] = undefined;
    this.#rootRepos[root] = undefined;
    this.#changes.rootsRemoved.push({ root, repos });
  }

  removeRepo(coordinate: string): void {
    const repo = this.repos.get(coordinate);
    if (!repo) return;
    this.repos.delete(coordinate);
    this.#byIdentifier.remove(repo.identifier, repo);
    repo.gone = true;
    this.#changes.repos.add(repo);
    for (const root of repo.roots) {
      const others = this.reposOfRoot(root).filter((other) => other !== repo);
      if (others.length === 0) this.#dropRoot(root, [repo]);
      else this.#rootRepos[root] = others.length === 1 ? others[0] : others;
    }
  }

  endReplay(): void {
    this.replayEnded = true;
    this.#earlyRoots = new Map();
    this.#earlyCount = 0;
  }
}

/**
 * A relay as an announcement lists it (spec "Following our own relay" 5): text of strangers goes in, normal forms come
 * out.
 */
export interface ListedRelay {
  readonly key: string;
  readonly url: RelayUrl;
  readonly host: string;
}

/** A clone URL of GRASP shape, `…/<npub>/<identifier>.git`: the same service is a relay at its base. */
const graspPath = /^(.*)\/npub1[02-9ac-hj-np-z]{58}\/[^/]+\.git\/?$/;

function relayOfClone(text: string): string | undefined {
  const scheme = text.slice(0, 8).toLowerCase();
  const rest = scheme.startsWith("https://") ? text.slice(8) : scheme.startsWith("http://") ? text.slice(7) : undefined;
  const base = rest === undefined ? undefined : graspPath.exec(rest)?.[1];
  return base ? `${scheme.startsWith("https") ? "wss" : "ws"}://${base}` : undefined;
}

export function listedRelay(text: string): ListedRelay | undefined {
  const url = normalRelayUrl(text);
  const key = url && servicePart(url);
  if (!url || !key) return undefined;
  return { key, url, host: new URL(url).hostname };
}

/** In order, each once, wss where a relay is listed both ways, without ourselves, at most `max`. */
export function relaysOf(
  announcement: Pick<Announcement, "relays" | "clone">,
  ownServices: readonly string[],
  max: number,
): ListedRelay[] {
  const found = new Map<string, ListedRelay>();
  const add = (text: string | undefined): void => {
    const relay = text === undefined ? undefined : listedRelay(text);
    if (!relay || ownServices.includes(relay.key)) return;
    const known = found.get(relay.key);
    if (known ? relay.url.startsWith("wss:") : found.size < max) found.set(relay.key, relay);
  };
  for (const text of announcement.relays) add(text);
  for (const text of announcement.clone) add(relayOfClone(text));
  return [...found.values()];
}
