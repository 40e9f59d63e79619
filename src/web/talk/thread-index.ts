// Issues, pull requests and patches of repositories, with their status, kept in memory for those whose pages are read:
// built from the store once, then kept true by each commit. So a page of ten thousand issues costs what it shows. Of a status
// or label the word of the thread's author or of a maintainer counts; a stranger's never does, and is not even asked for.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { MaintainerSet } from "../../catalogue/maintainer-set.js";
import { type RepositoryName, repositoryAddress, repositoryKey } from "../../catalogue/repositories.js";
import { compareNewestFirst, type EventId, kinds, type Pubkey, tagValue, tagValues } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import { beginningOf, beginningOfEvent, type EventBeginning } from "../../store/event-beginning.js";
import type { Commit, Store } from "../../store/port.js";
import { publicMaintainers } from "../public-maintainers.js";
import {
  continuedBy,
  labelsGiven,
  labelsOf,
  type StatusWord,
  statusKinds,
  type Thread,
  type ThreadRoot,
  threadRootOf,
} from "./thread.js";

/** Of each kind of one repository: older ones are not listed. */
const maxOfKind = 20_000;
/** Of all repositories in memory together; the repository asked for longest ago goes first. */
const maxKept = 80_000;
const wordsBatch = 300;
const maxWords = 3_000;
/** A status or label has little to say; longer ones are not looked at. */
const longestWord = 16 * 1024;
/** Steps from a patch to its first one. */
const maxSeries = 200;
/** Events that came while an index was built. */
const maxLate = 2_000;

const rootKinds: readonly number[] = [kinds.issue, kinds.pullRequest, kinds.patch, kinds.pullRequestUpdate];
const wordKinds = [...statusKinds.keys(), kinds.label];

/** A patch or an update, and what it continues. */
interface Continuing {
  readonly from: EventId;
  readonly event: Pick<ThreadRoot, "id" | "author" | "created_at" | "tip">;
}

interface Lists {
  readonly issues: readonly Thread[];
  readonly proposals: readonly Thread[];
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

export class RepositoryThreads {
  readonly #threads = new Map<EventId, Writable<Thread>>();
  /** What each said itself, before anybody said something of it. */
  readonly #roots = new Map<EventId, ThreadRoot>();
  readonly #continuing = new Map<EventId, Continuing>();
  /** Statuses and labels that count, and the thread of each. */
  readonly #counted = new Map<EventId, EventId>();
  /** Threads whose words have to be read (again). */
  readonly #unread = new Set<EventId>();
  #lists: Lists | undefined;
  isStale = false;
  /** Older ones are not here. */
  isCut = false;

  constructor(
    readonly name: RepositoryName,
    readonly set: MaintainerSet,
  ) {}

  get maintainers(): ReadonlySet<Pubkey> {
    return this.set.members;
  }

  get size(): number {
    return this.#threads.size + this.#continuing.size;
  }

  /** Newest first. */
  get issues(): readonly Thread[] {
    return this.#sorted().issues;
  }

  /** Pull requests and patches, newest first. */
  get proposals(): readonly Thread[] {
    return this.#sorted().proposals;
  }

  get(id: EventId): Thread | undefined {
    this.#sorted();
    return this.#threads.get(id);
  }

  /** The first of the series that an event belongs to, if it is here. */
  rootOf(id: EventId): Thread | undefined {
    let at = id;
    for (let step = 0; step < maxSeries; step++) {
      const thread = this.#threads.get(at);
      if (thread) return thread;
      const from = this.#continuing.get(at)?.from;
      if (from === undefined) return undefined;
      at = from;
    }
    return undefined;
  }

  /** Patches and updates that continue a thread, oldest first; of everybody, or of one author. */
  continuationsOf(id: EventId, author?: Pubkey): EventId[] {
    const isAuthors = ({ event }: Continuing): boolean => author === undefined || event.author === author;
    const found = [...this.#continuing].filter(([one, what]) => isAuthors(what) && this.rootOf(one)?.id === id);
    return found.sort(([, a], [, b]) => compareNewestFirst(b.event, a.event)).map(([one]) => one);
  }

  maySay(thread: Pick<Thread, "author">, pubkey: Pubkey): boolean {
    return thread.author === pubkey || this.maintainers.has(pubkey);
  }

  take(event: EventBeginning): void {
    if (wordKinds.includes(event.kind)) this.#takeWord(event);
    else if (rootKinds.includes(event.kind)) this.#takeRoot(event);
  }

  #takeRoot(event: EventBeginning): void {
    if (this.#threads.has(event.id) || this.#continuing.has(event.id)) return;
    const root = threadRootOf(event);
    const from = continuedBy(event);
    this.#lists = undefined;
    if (from !== undefined) {
      const { id, author, created_at, tip } = root;
      this.#continuing.set(id, { from, event: { id, author, created_at, tip } });
    } else if (event.kind !== kinds.pullRequestUpdate) {
      this.#roots.set(root.id, root);
      this.#threads.set(root.id, { ...root, status: "open", word: undefined });
      this.#unread.add(root.id);
    }
  }

  #takeWord(event: EventBeginning): void {
    if (event.size > longestWord) return;
    const status = statusKinds.get(event.kind);
    for (const id of tagValues(event, "e").slice(0, 50)) {
      const thread = this.#threads.get(id as EventId);
      if (!thread || !this.maySay(thread, event.pubkey)) continue;
      this.#lists = undefined;
      this.#counted.set(event.id, thread.id);
      if (status === undefined) thread.labels = labelsOf([...thread.labels, ...labelsGiven(event)]);
      else {
        const word: StatusWord = { status, author: event.pubkey, created_at: event.created_at, id: event.id };
        if (thread.word && compareNewestFirst(word, thread.word) > 0) continue;
        thread.word = word;
        thread.status = status;
      }
    }
  }

  /** Undone by its author, an operator or time. */
  remove(id: EventId): void {
    const about = this.#counted.get(id);
    const thread = about && this.#threads.get(about);
    if (this.#counted.delete(id) && thread) {
      // An earlier word may count again.
      Object.assign(thread, this.#roots.get(thread.id), { status: "open", word: undefined });
      this.#unread.add(thread.id);
      this.#lists = undefined;
    }
    this.#roots.delete(id);
    if (this.#threads.delete(id) || this.#continuing.delete(id)) this.#lists = undefined;
  }

  /** Threads whose statuses and labels were not asked for yet. */
  takeUnread(): Thread[] {
    const unread = [...this.#unread].flatMap((id) => this.#threads.get(id) ?? []);
    this.#unread.clear();
    return unread;
  }

  #sorted(): Lists {
    if (!this.#lists) {
      for (const [id, thread] of this.#threads) thread.tip = this.#roots.get(id)?.tip;
      const oldestFirst = [...this.#continuing.values()].sort((a, b) => compareNewestFirst(b.event, a.event));
      for (const { event, from } of oldestFirst) {
        const root = this.rootOf(from);
        const thread = root && this.#threads.get(root.id);
        // What others continue proposes nothing in the author's name.
        if (thread && thread.author === event.author && event.tip) thread.tip = event.tip;
      }
      const all = [...this.#threads.values()].sort(compareNewestFirst);
      this.#lists = {
        issues: all.filter(({ kind }) => kind === kinds.issue),
        proposals: all.filter(({ kind }) => kind !== kinds.issue),
      };
    }
    return this.#lists;
  }
}

interface Kept {
  readonly key: string;
  readonly name: RepositoryName;
  readonly ready: Promise<RepositoryThreads>;
  /** Present when it is built. */
  threads: RepositoryThreads | undefined;
  /** What came meanwhile. */
  readonly late: EventBeginning[];
  /** Who maintains it may have changed meanwhile. */
  isOutdated: boolean;
}

export class ThreadIndex {
  readonly #kept = new Map<string, Kept>();
  #stop: (() => void) | undefined;

  constructor(readonly store: Store) {}

  close(): void {
    this.#stop?.();
    this.#kept.clear();
  }

  async of(name: RepositoryName): Promise<RepositoryThreads> {
    // Events cost nothing here as long as nobody reads pages.
    this.#stop ??= this.store.onCommit((commit) => this.#follow(commit));
    const key = repositoryKey(name);
    let kept = this.#kept.get(key);
    if (kept?.threads?.isStale) kept = undefined;
    this.#kept.delete(key);
    kept ??= this.#build(key, name);
    // Asked for last: at the end of the map.
    this.#kept.set(key, kept);
    const threads = await kept.ready;
    await this.#readWords(threads);
    return threads;
  }

  #build(key: string, name: RepositoryName): Kept {
    const late: EventBeginning[] = [];
    const read = async (): Promise<RepositoryThreads> => {
      const threads = new RepositoryThreads(name, await publicMaintainers(this.store, name));
      for (const kind of rootKinds) {
        const filter: Filter = { kinds: [kind], tags: new Map([["a", [repositoryAddress(name)]]]), limit: maxOfKind };
        let found = 0;
        for await (const page of this.store.query([filter], { pageRows: 200, passingRows: true })) {
          for (const row of page) {
            const event = beginningOf(row);
            if (event) threads.take(event);
          }
          found += page.length;
        }
        threads.isCut ||= found >= maxOfKind;
      }
      await this.#readWords(threads);
      for (const event of late.splice(0)) threads.take(event);
      threads.isStale = kept.isOutdated;
      kept.threads = threads;
      this.#makeRoom();
      return threads;
    };
    const kept: Kept = { key, name, ready: read(), threads: undefined, late, isOutdated: false };
    kept.ready.catch(() => {
      if (this.#kept.get(key) === kept) this.#kept.delete(key);
    });
    return kept;
  }

  async #readWords(threads: RepositoryThreads): Promise<void> {
    const unread = threads.takeUnread();
    for (let at = 0; at < unread.length; at += wordsBatch) {
      const batch = unread.slice(at, at + wordsBatch);
      const about = new Map([["e", batch.map(({ id }) => id)]]);
      const authors = new Set(batch.map(({ author }) => author).filter((key) => !threads.maintainers.has(key)));
      // What authors say about their own threads must not crowd out what maintainers say.
      for (const said of [threads.maintainers, authors]) {
        if (said.size === 0) continue;
        const filter: Filter = { kinds: wordKinds, authors: [...said], tags: about, limit: maxWords };
        for await (const page of this.store.query([filter], { pageRows: 200, passingRows: true })) {
          for (const row of page) if (row.size <= longestWord) threads.take(beginningOfEvent(row.event, row.size));
        }
      }
      await nextTurn();
    }
  }

  #makeRoom(): void {
    let total = 0;
    for (const { threads } of this.#kept.values()) total += (threads?.size ?? 0) + 20;
    for (const [key, { threads }] of this.#kept) {
      if (total <= maxKept || this.#kept.size <= 1) break;
      if (!threads) continue;
      this.#kept.delete(key);
      total -= threads.size + 20;
    }
  }

  /** Quick: called with every commit of the store. */
  #follow(commit: Commit): void {
    if (this.#kept.size === 0) return;
    for (const key of commit.changedKeys("meta")) if (key === "maintainers-mutual") this.#kept.clear();
    for (const entry of commit.entries) {
      if (entry.type === "removed") {
        for (const { threads } of this.#kept.values()) threads?.remove(entry.id);
        continue;
      }
      const { event } = entry;
      if (event.kind === kinds.announcement) this.#announced(event.pubkey, tagValue(event, "d") ?? "");
      else if (rootKinds.includes(event.kind)) {
        for (const address of new Set(tagValues(event, "a").slice(0, 50))) {
          const kept = this.#kept.get(keyOfAddress(address));
          if (kept) this.#hand(kept, beginningOfEvent(event));
        }
      } else if (wordKinds.includes(event.kind) && event.raw.length <= longestWord) {
        for (const kept of this.#kept.values()) this.#hand(kept, beginningOfEvent(event));
      }
    }
  }

  #hand(kept: Kept, event: EventBeginning): void {
    if (kept.threads) kept.threads.take(event);
    else if (kept.late.length < maxLate) kept.late.push(event);
    else this.#kept.delete(kept.key);
  }

  /** Who maintains a repository may have changed. */
  #announced(pubkey: Pubkey, identifier: string): void {
    for (const kept of this.#kept.values()) {
      if (kept.name.identifier !== identifier) continue;
      if (!kept.threads) kept.isOutdated = true;
      else if (kept.threads.set.standings.has(pubkey)) kept.threads.isStale = true;
    }
  }
}

function keyOfAddress(address: string): string {
  const [kind, owner = "", ...identifier] = address.split(":");
  return Number(kind) === kinds.announcement
    ? repositoryKey({ owner: owner as Pubkey, identifier: identifier.join(":") })
    : "";
}
