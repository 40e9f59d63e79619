// Places for heavy work: in all, for one repository, for one address (threats.md rows 9, 33, 41 and 42).
//
//   const turns = new Turns(() => ({ total: 8, perRepository: 4, perIp: 2, maxQueued: 32 }));
//   const release = await turns.acquire({ ip, repository }, signal);   // undefined: refused, or the signal aborted
//   try { … } finally { release(); }
//
// A request that finds no free place waits in a bounded queue. A place that becomes free goes to the address that holds the
// fewest places; among equals, to the request that has waited longest. While the queue is full, a new request takes the queue
// place of the address with the most waiting requests, if its own address has fewer; otherwise it is refused at once.
// `keptForOthers`: this many places go only to addresses that hold none. `keptForTrusted`: this many places go only to
// requests that are `trusted`. Both are zero if not given.

import { ipGroup } from "./rates.js";

export interface TurnLimits {
  readonly total: number;
  readonly perRepository: number;
  readonly perIp: number;
  readonly maxQueued: number;
  readonly keptForOthers?: number;
  readonly keptForTrusted?: number;
}

export interface TurnOwner {
  readonly ip: string;
  readonly repository?: string;
  readonly trusted?: boolean;
}

interface Asker {
  readonly group: string;
  readonly repository: string | undefined;
  readonly trusted: boolean;
}

interface Waiting extends Asker {
  readonly go: (release: (() => void) | undefined) => void;
}

export class Turns {
  #running = 0;
  readonly #perRepository = new Map<string, number>();
  readonly #perGroup = new Map<string, number>();
  readonly #queue: Waiting[] = [];

  constructor(readonly limits: () => TurnLimits) {}

  get queued(): number {
    return this.#queue.length;
  }

  get running(): number {
    return this.#running;
  }

  /** Resolves with the function that gives the place back; undefined when there is no place or the signal aborted. */
  acquire(owner: TurnOwner, signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const asker: Asker = {
      group: ipGroup(owner.ip),
      repository: owner.repository,
      trusted: owner.trusted ?? false,
    };
    if (this.#fits(asker)) return Promise.resolve(this.#take(asker));
    if (this.#queue.length >= this.limits().maxQueued && !this.#crowdOut(asker)) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const leave = (): void => {
        const index = this.#queue.indexOf(waiting);
        if (index >= 0) this.#queue.splice(index, 1);
        resolve(undefined);
      };
      const waiting: Waiting = {
        ...asker,
        go: (release) => {
          signal.removeEventListener("abort", leave);
          resolve(release);
        },
      };
      this.#queue.push(waiting);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #fits({ group, repository, trusted }: Asker): boolean {
    const { total, perRepository, perIp, keptForOthers = 0, keptForTrusted = 0 } = this.limits();
    const own = this.#perGroup.get(group) ?? 0;
    const kept = (own > 0 ? keptForOthers : 0) + (trusted ? 0 : keptForTrusted);
    // However many are kept, somebody must get on.
    return (
      this.#running < Math.max(total - kept, this.#running === 0 ? 1 : 0) &&
      own < perIp &&
      (repository === undefined || (this.#perRepository.get(repository) ?? 0) < perRepository)
    );
  }

  #take({ group, repository }: Asker): () => void {
    this.#running += 1;
    add(this.#perGroup, group, 1);
    if (repository !== undefined) add(this.#perRepository, repository, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      add(this.#perGroup, group, -1);
      if (repository !== undefined) add(this.#perRepository, repository, -1);
      this.#wake();
    };
  }

  /** Sends away the last in the queue of the address that fills it, if that has more in it than the asker would. */
  #crowdOut(asker: Asker): boolean {
    const waiting = new Map<string, number>();
    for (const { group } of this.#queue) add(waiting, group, 1);
    let most: string | undefined;
    for (const [group, count] of waiting) if (count > (waiting.get(most ?? "") ?? 0)) most = group;
    if (most === undefined || (waiting.get(most) ?? 0) <= (waiting.get(asker.group) ?? 0) + 1) return false;
    const index = this.#queue.findLastIndex(({ group }) => group === most);
    const [last] = this.#queue.splice(index, 1);
    last?.go(undefined);
    return true;
  }

  #wake(): void {
    for (;;) {
      let next = -1;
      let fewest = Number.POSITIVE_INFINITY;
      for (const [index, waiting] of this.#queue.entries()) {
        const own = this.#perGroup.get(waiting.group) ?? 0;
        if (own >= fewest || !this.#fits(waiting)) continue;
        next = index;
        fewest = own;
      }
      const [waiting] = next < 0 ? [] : this.#queue.splice(next, 1);
      if (!waiting) return;
      waiting.go(this.#take(waiting));
    }
  }
}

function add(counts: Map<string, number>, key: string, amount: number): void {
  const count = (counts.get(key) ?? 0) + amount;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
