// What happens in a run: repositories and their events before the start, and during the troubled hours new ones,
// changes, deletions, outages, clock jumps. Everything is drawn from the seed.

import type { NostrEvent, Pubkey } from "../src/nostr/event.js";
import { announcement, type Draft, makeEvent, newPubkey, startWallMs } from "./events.js";
import type { GitModel } from "./model-server.js";
import type { Chance } from "./random.js";
import type { Scenario } from "./scenario.js";
import type { World } from "./world.js";

interface Repo {
  readonly owner: Pubkey;
  readonly maintainers: readonly Pubkey[];
  readonly identifier: string;
  readonly coordinate: string;
  relays: string[];
  listsUs: boolean;
  announced: number;
  readonly roots: NostrEvent[];
  readonly comments: NostrEvent[];
}

const minute = 60 * 1000;
const hour = 60 * minute;

/** Most git data is there at once, some later, some never: by the first digit of the announcement's id. */
export const modelGit: GitModel = {
  arrivesAfterMs(event) {
    const digit = Number.parseInt(event.id[0]!, 16);
    if (digit < 10) return 0;
    return digit < 15 ? (digit - 9) * 4 * minute : undefined;
  },
};

export class Story {
  readonly #chance: Chance;
  readonly #world: World;
  readonly #scenario: Scenario;
  readonly #relays: readonly string[];
  readonly people: Pubkey[];
  readonly #repos: Repo[] = [];

  /** `relays`: those that repositories list. */
  constructor(chance: Chance, world: World, scenario: Scenario, relays: readonly string[]) {
    this.#chance = chance;
    this.#world = world;
    this.#scenario = scenario;
    this.#relays = relays;
    this.people = Array.from({ length: 12 }, () => newPubkey(chance));
  }

  get repos(): readonly Pick<Repo, "coordinate" | "roots">[] {
    return this.#repos;
  }

  #nowSeconds(): number {
    return Math.floor(this.#world.now().wallMs / 1000);
  }

  #newRepo(createdAt: number): { repo: Repo; event: NostrEvent } {
    const chance = this.#chance;
    const owner = chance.of(this.people);
    const base = `repo-${this.#repos.length}`;
    const kind = chance.next();
    const shared = kind < 0.15 && this.#repos.length > 0 ? chance.of(this.#repos).identifier : undefined;
    const identifier = shared ?? (kind > 0.93 ? base + "x".repeat(300) : kind > 0.8 ? `${base}:with:colons` : base);
    const repo: Repo = {
      owner,
      maintainers: chance.some(this.people, chance.between(0, 2)),
      identifier,
      coordinate: `30617:${owner}:${identifier}`,
      relays: chance.some(this.#relays, chance.between(1, 3)),
      listsUs: chance.once(0.8),
      announced: 0,
      roots: [],
      comments: [],
    };
    this.#repos.push(repo);
    return { repo, event: this.#announce(repo, createdAt) };
  }

  #announce(repo: Repo, createdAt: number): NostrEvent {
    repo.announced = Math.max(repo.announced + 1, createdAt);
    const urls = repo.relays.map((key) => `${this.#chance.once(0.1) ? "ws" : "wss"}://${key}/`);
    return announcement(
      this.#chance,
      repo.owner,
      repo.identifier,
      repo.announced,
      urls,
      repo.listsUs,
      repo.maintainers,
    );
  }

  #event(kind: number, createdAt: number, tags: string[][], author = this.#chance.of(this.people)): NostrEvent {
    const draft: Draft = { pubkey: author, kind, created_at: createdAt, tags };
    return makeEvent(this.#chance, draft);
  }

  #state(repo: Repo, createdAt: number): NostrEvent {
    const author = this.#chance.once(0.8)
      ? this.#chance.of([repo.owner, ...repo.maintainers])
      : this.#chance.of(this.people);
    return this.#event(30618, createdAt, [["d", repo.identifier]], author);
  }

  /** Kinds take turns, so that one kind of one second never fills the smallest page: nobody could read on then. */
  #issue(repo: Repo, createdAt: number, turn = this.#chance.between(0, 3)): NostrEvent {
    const tags = [["a", repo.coordinate]];
    if (this.#chance.once(0.1)) tags.push(["a", this.#chance.of(this.#repos).coordinate]);
    const root = this.#event([1617, 1618, 1619, 1621][turn % 4]!, createdAt, tags);
    repo.roots.push(root);
    return root;
  }

  #comment(repo: Repo, createdAt: number): NostrEvent {
    const chance = this.#chance;
    const root = repo.roots.length > 0 ? chance.of(repo.roots) : undefined;
    if (!root || chance.once(0.15)) return this.#event(1, createdAt, [[chance.of(["a", "A", "q"]), repo.coordinate]]);
    const parent = repo.comments.length > 0 && chance.once(0.25) ? chance.of(repo.comments) : undefined;
    if (parent) return this.#event(1111, createdAt, [[chance.of(["e", "E"]), parent.id]]);
    const comment = this.#event(chance.of([1111, 1630, 1632, 7]), createdAt, [[chance.of(["e", "E", "q"]), root.id]]);
    if (comment.kind === 1111) repo.comments.push(comment);
    return comment;
  }

  #deletion(repo: Repo, createdAt: number): NostrEvent | undefined {
    const target =
      [...repo.roots, ...repo.comments].length > 0 ? this.#chance.of([...repo.roots, ...repo.comments]) : undefined;
    if (!target) return undefined;
    const stranger = this.#chance.once(0.2);
    const author = stranger ? this.#chance.of(this.people) : target.pubkey;
    if (author === target.pubkey) this.#forget(repo, target);
    return this.#event(5, createdAt, [["e", target.id]], author);
  }

  #forget(repo: Repo, target: NostrEvent): void {
    for (const list of [repo.roots, repo.comments]) {
      const at = list.indexOf(target);
      if (at >= 0) list.splice(at, 1);
    }
    for (const relay of this.#world.relays.values()) if (relay.honest) relay.delete(target.id);
  }

  #spread(repo: Repo, event: NostrEvent): void {
    const chance = this.#chance;
    for (const key of chance.some(repo.relays, chance.between(1, repo.relays.length)))
      this.#world.links.publishAt(key, event);
    if (chance.once(0.2)) this.#world.submitHere(event);
  }

  /** Before the core starts: some of it is here, the rest only elsewhere. */
  begin(): void {
    const chance = this.#chance;
    const world = this.#world;
    const past = (): number => Math.floor(startWallMs / 1000) - chance.between(100, 40_000_000);
    for (let n = 0; n < this.#scenario.size.repos; n++) {
      const { repo, event } = this.#newRepo(past());
      if (chance.once(0.6)) world.server.submit(event);
      for (const key of repo.relays) world.links.publishAt(key, event);
      // Announcements are also found where nobody listed them.
      if (chance.once(0.3)) world.links.publishAt(chance.of(this.#relays), event);
      for (let left = chance.between(0, 6); left > 0; left--) this.#spread(repo, this.#issue(repo, past()));
      if (chance.once(0.15)) {
        // An import: many events in one second.
        const second = past();
        for (let left = chance.between(10, 60); left > 0; left--) this.#spread(repo, this.#issue(repo, second, left));
      }
      for (let left = chance.between(0, 8); left > 0; left--) this.#spread(repo, this.#comment(repo, past()));
      for (let left = chance.between(0, 3); left > 0; left--) this.#spread(repo, this.#state(repo, past()));
    }
    world.server.replay();
    this.#plan();
  }

  #plan(): void {
    const chance = this.#chance;
    const { size, trouble } = this.#scenario;
    const timeline = this.#world.timeline;
    const endMs = size.hours * hour;
    for (let n = 0; n < size.happenings; n++) timeline.at(chance.next() * endMs, () => this.#happen());
    for (const key of this.#relays) {
      const outages = Math.floor(trouble.outages * size.hours + chance.next());
      for (let n = 0; n < outages; n++) {
        const from = chance.next() * endMs;
        const lasts = chance.of([1000, 30_000, 10 * minute, 20 * minute, 2 * hour]);
        timeline.at(from, () => this.#world.links.setDown(key, true));
        timeline.at(Math.min(endMs, from + lasts), () => this.#world.links.setDown(key, false));
      }
    }
    if (trouble.storeTrouble) {
      const from = chance.next() * endMs;
      timeline.at(from, () => {
        this.#world.server.troubled = true;
      });
      timeline.at(Math.min(endMs, from + 5 * minute), () => {
        this.#world.server.troubled = false;
      });
    }
    if (trouble.clockJumps)
      timeline.at(chance.next() * endMs, () => this.#world.jumpWall(chance.of([-hour, hour, -minute])));
  }

  #happen(): void {
    const chance = this.#chance;
    const now = this.#nowSeconds();
    const what = chance.next();
    if (this.#repos.length === 0 || what < 0.08) {
      const { repo, event } = this.#newRepo(now);
      this.#spread(repo, event);
      return;
    }
    const repo = chance.of(this.#repos);
    if (what < 0.35) this.#spread(repo, this.#issue(repo, now - chance.between(0, 1500)));
    else if (what < 0.7) this.#spread(repo, this.#comment(repo, now - chance.between(0, 1500)));
    else if (what < 0.8) this.#spread(repo, this.#state(repo, now));
    else if (what < 0.88) this.#changeRelays(repo, now);
    else if (what < 0.95) {
      const deletion = this.#deletion(repo, now);
      if (deletion) this.#spread(repo, deletion);
    } else this.#world.links.cut(chance.of(this.#relays));
  }

  #changeRelays(repo: Repo, now: number): void {
    const before = repo.relays;
    repo.relays = this.#chance.some(this.#relays, this.#chance.between(1, 3));
    repo.listsUs = this.#chance.once(0.9);
    const event = this.#announce(repo, now);
    for (const key of new Set([...before, ...repo.relays])) this.#world.links.publishAt(key, event);
  }
}
