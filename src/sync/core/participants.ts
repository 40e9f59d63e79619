// Who takes part in each repository's conversation (grasp.md, GRASP-03): its maintainers, who wrote something that was
// accepted, and keys that roots name. At most `maxParticipants` a repository: maintainers first, then whoever wrote last,
// those who are only named at the end, so that strangers cannot push a repository's own people out by naming keys.

import { SetsByKey } from "../../base/collections.js";
import { type EventId, isPubkey, type NostrEvent, type Pubkey } from "../../nostr/event.js";
import type { SyncConfig } from "./config.js";
import type { Participant } from "./messages.js";
import type { Repo } from "./wanted.js";

const ranks: Readonly<Record<Participant["role"], number>> = { maintainer: 0, author: 1, named: 2 };

/** Negative when `a` comes first. */
export const compareParticipants = (a: Participant, b: Participant): number =>
  ranks[a.role] - ranks[b.role] || b.activeSeconds - a.activeSeconds || (a.pubkey < b.pubkey ? -1 : 1);

/** Two things known of one key: the better role, the later time. */
const together = (a: Participant, b: Participant): Participant => ({
  pubkey: a.pubkey,
  role: ranks[a.role] <= ranks[b.role] ? a.role : b.role,
  activeSeconds: Math.max(a.activeSeconds, b.activeSeconds),
});

/** The keys a root names (`p`, `P`), each once. */
export function namedIn(root: Pick<NostrEvent, "tags">, max: number): Pubkey[] {
  const named = new Set<Pubkey>();
  for (const [name, value] of root.tags) {
    if (named.size >= max) break;
    if ((name === "p" || name === "P") && isPubkey(value)) named.add(value);
  }
  return [...named];
}

/** The first of them, in order, each key once. */
export function mostActive(found: Iterable<Participant>, max: number): Participant[] {
  const byKey = new Map<Pubkey, Participant>();
  for (const one of found) {
    const known = byKey.get(one.pubkey);
    byKey.set(one.pubkey, known ? together(known, one) : one);
  }
  return [...byKey.values()].sort(compareParticipants).slice(0, max);
}

export class Participants {
  readonly #byRepo = new Map<Repo, Map<Pubkey, Participant>>();
  readonly #byAuthor = new SetsByKey<Pubkey, Repo>();

  constructor(readonly config: SyncConfig) {}

  /** Repositories whose participants are followed. */
  get repos(): Iterable<Repo> {
    return this.#byRepo.keys();
  }

  get authorCount(): number {
    return this.#byAuthor.size;
  }

  get repoCount(): number {
    return this.#byRepo.size;
  }

  knows(repo: Repo): boolean {
    return this.#byRepo.has(repo);
  }

  takesPart(author: Pubkey): boolean {
    return this.#byAuthor.has(author);
  }

  reposOf(author: Pubkey): Iterable<Repo> {
    return this.#byAuthor.get(author) ?? [];
  }

  keysOf(repo: Repo): Iterable<Pubkey> {
    return this.#byRepo.get(repo)?.keys() ?? [];
  }

  /** Most active first. */
  of(repo: Repo): Participant[] {
    return [...(this.#byRepo.get(repo)?.values() ?? [])].sort(compareParticipants);
  }

  follow(repo: Repo): void {
    if (!this.knows(repo)) this.#byRepo.set(repo, new Map());
  }

  drop(repo: Repo): void {
    for (const author of this.#byRepo.get(repo)?.keys() ?? []) this.#byAuthor.remove(author, repo);
    this.#byRepo.delete(repo);
  }

  /** All that our own store knows of; what was noted meanwhile stays. True: somebody is new, or out. */
  replace(repo: Repo, found: readonly Participant[], notedSince: (one: Participant) => boolean): boolean {
    const before = this.#byRepo.get(repo);
    if (!before) return false;
    const kept = [...before.values()].filter(notedSince);
    const after = new Map(mostActive([...found, ...kept], this.config.maxParticipants).map((one) => [one.pubkey, one]));
    this.#byRepo.set(repo, after);
    for (const author of before.keys()) if (!after.has(author)) this.#byAuthor.remove(author, repo);
    for (const author of after.keys()) this.#byAuthor.add(author, repo);
    return after.size !== before.size || [...after.keys()].some((author) => !before.has(author));
  }

  /** True: somebody is new. Who is least active makes room. */
  note(repo: Repo, participant: Participant): boolean {
    const members = this.#byRepo.get(repo);
    if (!members) return false;
    const { pubkey } = participant;
    const known = members.get(pubkey);
    if (known) {
      members.set(pubkey, together(known, participant));
      return false;
    }
    if (members.size >= this.config.maxParticipants) {
      const last = this.of(repo).at(-1);
      if (!last || compareParticipants(participant, last) > 0) return false;
      members.delete(last.pubkey);
      this.#byAuthor.remove(last.pubkey, repo);
    }
    members.set(pubkey, participant);
    this.#byAuthor.add(pubkey, repo);
    return true;
  }
}

/** What is to be done about participants' own relays (outbox.ts). */
export class OutboxWork<Relay> {
  /** Repositories whose participants, or whose participants' lists, have changed. */
  readonly changed = new Set<Repo>();
  /** What was accepted here since then. */
  accepted: Pick<NostrEvent, "id" | "pubkey" | "kind" | "created_at" | "tags">[] = [];
  /** When all this is looked at. */
  dueMs = Number.POSITIVE_INFINITY;
  /** Repositories whose participants are to be looked up, and those that are being looked up since then. */
  readonly toLookUp = new Set<Repo>();
  readonly lookedUp = new Map<Repo, number>();
  /** Some of their outbox relays found no place under the caps. */
  readonly unplaced = new Set<Repo>();
  /** Relays that are asked what participants wrote there, and those that no announcement lists. */
  readonly asked = new Set<Relay>();
  readonly unlisted = new Set<Relay>();
  isOn = true;
  /** Events that are looked for at their signers' relays, once it is known which those are. */
  readonly awaited = new Map<Pubkey, Set<EventId>>();
}
