// Who waits at a throttled domain: round-robin over jobs, one URL a turn. Repositories and pull requests stand in two
// lines that take turns, so that strangers' pull requests cannot crowd out repositories.

import type { JobKind } from "./messages.js";

/** `undefined`: nothing left to try here. `"not-now"`: keeps its place. */
export type Pick = (key: string, tried: ReadonlySet<string>) => string | "not-now" | undefined;

export interface Picked {
  readonly key: string;
  readonly url: string;
}

const otherKind = (kind: JobKind): JobKind => (kind === "repository" ? "pull-request" : "repository");

export class DomainQueue {
  /** Job → URLs of this domain it has tried since it joined. A Map's order is the line's order. */
  readonly #lines: Readonly<Record<JobKind, Map<string, Set<string>>>> = {
    repository: new Map(),
    "pull-request": new Map(),
  };
  #turn: JobKind = "repository";

  /** Jobs of this kind that wait here. */
  waiting(kind: JobKind): number {
    return this.#lines[kind].size;
  }

  get size(): number {
    return this.#lines.repository.size + this.#lines["pull-request"].size;
  }

  /** Joins at the end. Who waits already keeps place and memory. */
  join(kind: JobKind, key: string, tried: Iterable<string>): void {
    if (!this.#lines[kind].has(key)) this.#lines[kind].set(key, new Set(tried));
  }

  /** That URL may have more than when it was tried. */
  tryAgain(kind: JobKind, key: string, url: string): void {
    this.#lines[kind].get(key)?.delete(url);
  }

  leave(kind: JobKind, key: string): boolean {
    return this.#lines[kind].delete(key);
  }

  /** A new state: what was tried may have it now. */
  forgetTried(kind: JobKind, key: string): void {
    this.#lines[kind].get(key)?.clear();
  }

  /** The next job and URL of the kinds that may start; jobs with nothing left leave and are named to `left`. */
  next(mayStart: (kind: JobKind) => boolean, pick: Pick, left: (key: string) => void): Picked | undefined {
    for (const kind of [this.#turn, otherKind(this.#turn)]) {
      const picked = mayStart(kind) ? this.#nextOf(kind, pick, left) : undefined;
      if (!picked) continue;
      this.#turn = otherKind(kind);
      return picked;
    }
    return undefined;
  }

  #nextOf(kind: JobKind, pick: Pick, left: (key: string) => void): Picked | undefined {
    const line = this.#lines[kind];
    for (const [key, tried] of line) {
      const url = pick(key, tried);
      if (url === "not-now") continue;
      line.delete(key);
      if (url === undefined) {
        left(key);
        continue;
      }
      tried.add(url);
      line.set(key, tried);
      return { key, url };
    }
    return undefined;
  }
}
