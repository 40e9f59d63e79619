// Repositories to check: which ones at the start and after an announcement, and the queue in which each stands at most
// once, a few are looked at side by side, and never the same one twice at once.

import type { Clock } from "../base/clock.js";
import { catalogueRows, type RepositoryName, repositoryKey, takesStates, underPrs } from "../catalogue/repositories.js";
import { contributorOf, waitingContributions, waitingHints, waitingKeys } from "../catalogue/waiting.js";
import { parseAddress } from "../nostr/event.js";
import { kinds } from "../nostr/kinds.js";
import { announcementOf } from "../nostr/nip34.js";
import type { FeedEntry, Store } from "../store/port.js";

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
  for await (const entry of waitingContributions(store)) {
    const contributor = contributorOf(entry);
    if (contributor) yield underPrs(contributor);
  }
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
