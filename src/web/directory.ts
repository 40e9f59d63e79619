// The repositories of this server as lists show them: what each is called, whose it is, its topics, its size, and what happened
// in it last. Read from the store once, when somebody first asks, then kept true by each commit: a page of a hundred
// thousand repositories costs what it shows. Served ones only (threats row 31).

import { setImmediate as nextTurn } from "node:timers/promises";
import { namedBy, rolesOf } from "../catalogue/maintainer-set.js";
import { type CatalogueRow, catalogueRows, type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import { type EventId, kinds, type Pubkey, tagValue } from "../nostr/event.js";
import { announcementOf, repositoriesTagged } from "../nostr/nip34.js";
import { beginningOf, beginningOfEvent, type EventBeginning } from "../store/event-beginning.js";
import type { Commit, Store } from "../store/port.js";
import { ownText } from "./read-within.js";
import { continuedBy, titleOf } from "./talk/thread.js";

/** An issue, a pull request or a patch. */
export interface LatestTalk {
  readonly id: EventId;
  readonly kind: number;
  readonly author: Pubkey;
  readonly at: number;
  readonly title: string;
}

export interface DirectoryEntry {
  readonly name: RepositoryName;
  readonly title: string;
  readonly description: string;
  readonly topics: readonly string[];
  /** Keys that its announcement names; whether they maintain it is another question. */
  readonly named: readonly Pubkey[];
  readonly bytes: number;
  readonly isMirror: boolean;
  readonly announcedAt: number;
  /** The newest state that was pushed. */
  readonly push: { readonly at: number; readonly state: EventId | undefined } | undefined;
  readonly talk: LatestTalk | undefined;
}

/** More are not listed; searching finds them. */
const maxEntries = 50_000;
/** Of all repositories, when the directory is read. */
const maxTalkRead = 500;
const maxNamed = 30;
const maxTopics = 8;
const talkKinds: readonly number[] = [kinds.issue, kinds.pullRequest, kinds.patch];

/** When something happened there last. Nobody stays on top by signing for next year. */
export const activityOf = ({ push, talk, announcedAt }: DirectoryEntry, nowSeconds: number): number =>
  Math.min(nowSeconds, Math.max(push?.at ?? 0, talk?.at ?? 0, announcedAt));

export class Directory {
  readonly #entries = new Map<string, DirectoryEntry>();
  /** Keys of the entries that show an event as their latest talk. */
  readonly #showing = new Map<EventId, Set<string>>();
  readonly #changed = new Set<string>();
  #stop: (() => void) | undefined;
  #read: Promise<void> | undefined;
  #list: readonly DirectoryEntry[] | undefined;
  isCut = false;

  constructor(readonly store: Store) {}

  close(): void {
    this.#stop?.();
  }

  /** In no particular order; the same list until something changes. */
  async all(): Promise<readonly DirectoryEntry[]> {
    // Events cost nothing here as long as nobody reads pages.
    this.#stop ??= this.store.onCommit((commit) => this.#follow(commit));
    this.#read ??= this.#readAll().catch((error: unknown) => {
      this.#read = undefined;
      throw error;
    });
    await this.#read;
    for (const key of this.#changed) {
      this.#changed.delete(key);
      const row = await this.store.row<CatalogueRow>("catalogue", key);
      await this.#take(key, row);
    }
    this.#list ??= [...this.#entries.values()];
    return this.#list;
  }

  async #readAll(): Promise<void> {
    let read = 0;
    for await (const row of catalogueRows(this.store)) {
      await this.#take(repositoryKey(row), row);
      // An announcement may have a megabyte.
      if (++read % 20 === 0) await nextTurn();
    }
    const filter = { kinds: talkKinds, limit: maxTalkRead };
    for await (const page of this.store.query([filter], { pageRows: 50, passingRows: true, limit: maxTalkRead })) {
      for (const row of page) {
        const event = beginningOf(row);
        if (event) this.#talked(event);
      }
    }
  }

  async #take(key: string, row: CatalogueRow | undefined): Promise<void> {
    this.#list = undefined;
    const isShown = row && (row.status === "served" || row.status === "archived" || row.status === "leaving");
    const stored =
      isShown && (await this.store.latest({ kind: kinds.announcement, pubkey: row.owner, identifier: row.identifier }));
    const announcement = stored ? announcementOf(stored.event) : undefined;
    if (!row || !announcement) {
      this.#show(key, undefined);
      this.#entries.delete(key);
      return;
    }
    if (this.#entries.size >= maxEntries && !this.#entries.has(key)) {
      this.isCut = true;
      return;
    }
    const text = (value: string, most: number): string => ownText(value.trim().slice(0, most));
    this.#entries.set(key, {
      name: { owner: row.owner, identifier: row.identifier },
      title: text(announcement.name, 120) || text(row.identifier, 120),
      description: text(announcement.description, 240),
      topics: [...new Set(announcement.hashtags.map((topic) => text(topic, 40)))].filter(Boolean).slice(0, maxTopics),
      named: namedBy(rolesOf(announcement.event))
        .slice(0, maxNamed)
        .map((pubkey) => ownText(pubkey) as Pubkey),
      bytes: row.counters.bytes,
      isMirror: row.status === "archived",
      announcedAt: announcement.event.created_at,
      push: row.mark ? { at: row.mark.created_at, state: row.governing ?? undefined } : undefined,
      talk: this.#entries.get(key)?.talk,
    });
  }

  /** A later patch of a series is no news of its own. */
  #talked(event: EventBeginning): void {
    if (continuedBy(event) !== undefined) return;
    for (const { pubkey: owner, identifier } of repositoriesTagged(event).slice(0, 20)) {
      const key = repositoryKey({ owner, identifier });
      const entry = this.#entries.get(key);
      if (!entry || (entry.talk && entry.talk.at >= event.created_at)) continue;
      const { id, kind, pubkey: author, created_at: at } = event;
      this.#show(key, { id, kind, author, at, title: titleOf(event) });
    }
  }

  #show(key: string, talk: LatestTalk | undefined): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    const before = entry.talk && this.#showing.get(entry.talk.id);
    before?.delete(key);
    if (entry.talk && before?.size === 0) this.#showing.delete(entry.talk.id);
    if (talk) this.#showing.set(talk.id, (this.#showing.get(talk.id) ?? new Set()).add(key));
    this.#entries.set(key, { ...entry, talk });
    this.#list = undefined;
  }

  /** Quick: called with every commit of the store. */
  #follow(commit: Commit): void {
    for (const key of commit.changedKeys("catalogue")) if (/^[0-9a-f]{64}:/.test(key)) this.#changed.add(key);
    for (const entry of commit.entries) {
      if (entry.type === "removed") this.#removed(entry.id, entry.address);
      else if (entry.event.kind === kinds.announcement)
        this.#changed.add(repositoryKey({ owner: entry.event.pubkey, identifier: tagValue(entry.event, "d") ?? "" }));
      else if (talkKinds.includes(entry.event.kind)) this.#talked(beginningOfEvent(entry.event));
    }
  }

  #removed(id: EventId, address: string | undefined): void {
    const [kind, owner = "", ...identifier] = (address ?? "").split(":");
    if (Number(kind) === kinds.announcement)
      this.#changed.add(repositoryKey({ owner: owner as Pubkey, identifier: identifier.join(":") }));
    for (const key of [...(this.#showing.get(id) ?? [])]) this.#show(key, undefined);
  }
}
