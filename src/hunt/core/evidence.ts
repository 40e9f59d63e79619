// Which servers were seen to serve an event that waits here (event-sync.md "Evidence ends the wait"): such a server has
// the git data by its own promise. Evidence may come before the event waits, so it is kept for a while either way.
// Bounds: with what waits as much as waits (purgatory caps that), a few origins each; without, the newest events only.

import type { EventId } from "../../nostr/ids.js";

const maxEarly = 1_000;
/** More than the URLs of a repository and of a pull request together. */
const maxOrigins = 32;

export class Evidence {
  readonly #origins = new Map<string, Set<string>>();
  readonly #jobs = new Map<string, Set<string>>();
  /** Events of which nothing waits, the oldest first. */
  readonly #early = new Set<string>();

  /** Answers the jobs that lack something for the event, if this is new. */
  note(event: EventId, origin: string): Iterable<string> {
    const origins = this.#origins.get(event) ?? new Set();
    if (origins.has(origin) || origins.size === maxOrigins) return [];
    this.#origins.set(event, origins.add(origin));
    const jobs = this.#jobs.get(event);
    if (!jobs) this.#keepEarly(event);
    return jobs ?? [];
  }

  /** Origins that serve the event. */
  of(event: string): ReadonlySet<string> | undefined {
    return this.#origins.get(event);
  }

  waits(event: string, job: string): void {
    this.#early.delete(event);
    this.#jobs.set(event, (this.#jobs.get(event) ?? new Set()).add(job));
  }

  left(event: string, job: string): void {
    const jobs = this.#jobs.get(event);
    jobs?.delete(job);
    if (jobs?.size !== 0) return;
    this.#jobs.delete(event);
    this.#origins.delete(event);
  }

  #keepEarly(event: EventId): void {
    this.#early.add(event);
    if (this.#early.size <= maxEarly) return;
    for (const oldest of this.#early) {
      this.#early.delete(oldest);
      this.#origins.delete(oldest);
      return;
    }
  }
}
