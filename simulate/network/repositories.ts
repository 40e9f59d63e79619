// The repositories that the servers share: who carries them, and what was said in each.

import type { NostrEvent, Pubkey } from "../../src/nostr/event.js";
import { announcement, makeEvent, newPubkey, startWallMs } from "../events.js";
import type { Chance } from "../random.js";
import type { Library, Shelved } from "./library.js";

export const hostOf = (server: number): string => `grasp-${server}.example`;

const kindBytes = { announcement: 900, state: 700, root: 1_100, reply: 650 };

export class Repository {
  readonly roots: Shelved[] = [];
  readonly replies: Shelved[] = [];
  readonly states: Shelved[] = [];

  constructor(
    readonly coordinate: string,
    readonly owner: Pubkey,
    readonly identifier: string,
    readonly announcement: Shelved,
    readonly servers: readonly number[],
  ) {}

  /** Kept once, whoever brings it first. */
  file(shelved: Shelved): void {
    const { kind } = shelved.event;
    const list = kind === 30_618 ? this.states : kind === 1111 ? this.replies : this.roots;
    if (list.at(-1) !== shelved && !list.includes(shelved)) list.push(shelved);
  }

  /** The state that a server serves. */
  stateOf(server: number, library: Library): Shelved | undefined {
    return this.states.findLast((state) => library.isServed(server, state));
  }
}

export class Talk {
  constructor(
    readonly chance: Chance,
    readonly library: Library,
  ) {}

  #event(pubkey: Pubkey, kind: number, tags: string[][], createdAt: number, bytes: number): Shelved {
    const event: NostrEvent = makeEvent(this.chance, { pubkey, kind, created_at: createdAt, tags });
    return this.library.add(event, Math.round(bytes * (0.6 + this.chance.next() * 0.8)));
  }

  state({ owner, identifier }: Repository, createdAt: number): Shelved {
    return this.#event(owner, 30_618, [["d", identifier]], createdAt, kindBytes.state);
  }

  root({ coordinate }: Repository, createdAt: number): Shelved {
    return this.#event(newPubkey(this.chance), 1621, [["a", coordinate]], createdAt, kindBytes.root);
  }

  /** To one of its roots; a root where there is none. */
  reply(repository: Repository, createdAt: number): Shelved {
    const { roots, coordinate } = repository;
    if (roots.length === 0) return this.root(repository, createdAt);
    const tags = [
      ["A", coordinate],
      ["E", this.chance.of(roots).event.id],
    ];
    return this.#event(newPubkey(this.chance), 1111, tags, createdAt, kindBytes.reply);
  }

  announce(at: number, servers: readonly number[]): Repository {
    const owner = newPubkey(this.chance);
    const identifier = `repository-${at}`;
    const urls = servers.map((server) => `wss://${hostOf(server)}`);
    const event = announcement(this.chance, owner, identifier, startSeconds - 10_000_000, urls, false);
    const bytes = kindBytes.announcement + servers.length * 90;
    return new Repository(`30617:${owner}:${identifier}`, owner, identifier, this.library.add(event, bytes), servers);
  }
}

const startSeconds = Math.floor(startWallMs / 1000);

/** Few repositories are everywhere, and few servers carry most: both by Zipf's law. */
export function placements(chance: Chance, repositories: number, servers: number): number[][] {
  const most = Math.min(20, servers);
  return Array.from({ length: repositories }, () => {
    const copies = Math.min(most, 2 + chance.zipf(19));
    const chosen = new Set<number>();
    // The last rank is never drawn: one more, so that each server is.
    while (chosen.size < copies) chosen.add(chance.zipf(servers + 1));
    return [...chosen];
  });
}

/** What was said before the model begins, served by everybody who carries it. */
export function history(talk: Talk, repository: Repository, roots: number, repliesEach: number): void {
  const { chance, library } = talk;
  const said: Shelved[] = [repository.announcement];
  const state = talk.state(repository, startSeconds - chance.between(100_000, 9_000_000));
  repository.file(state);
  said.push(state);
  for (let n = 0; n < roots; n++) {
    const root = talk.root(repository, startSeconds - chance.between(100_000, 9_000_000));
    repository.file(root);
    said.push(root);
  }
  for (let n = 0; n < roots * repliesEach; n++) {
    const reply = talk.reply(repository, startSeconds - chance.between(1_000, 90_000));
    repository.file(reply);
    said.push(reply);
  }
  for (const server of repository.servers) for (const shelved of said) library.serve(server, shelved);
}
