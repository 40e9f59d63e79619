// How much heavy work runs at once: in all, for one repository, for one address (git-http.md, Serving; threats.md row
// 9). What does not fit waits in a bounded queue, in order; what does not fit there is refused at once.

export interface WorkLimits {
  readonly total: number;
  readonly perRepository: number;
  readonly perIp: number;
  readonly maxQueued: number;
}

export interface WorkOwner {
  readonly repository: string;
  readonly ip: string;
}

interface Waiting {
  readonly owner: WorkOwner;
  readonly go: (release: (() => void) | undefined) => void;
}

export class WorkLimiter {
  #running = 0;
  readonly #perRepository = new Map<string, number>();
  readonly #perIp = new Map<string, number>();
  readonly #queue: Waiting[] = [];

  constructor(readonly limits: () => WorkLimits) {}

  get queued(): number {
    return this.#queue.length;
  }

  get running(): number {
    return this.#running;
  }

  /** Resolves with the function that gives the place back; undefined when the queue is full or the signal aborted. */
  acquire(owner: WorkOwner, signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    if (this.#fits(owner)) return Promise.resolve(this.#take(owner));
    if (this.#queue.length >= this.limits().maxQueued) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const leave = (): void => {
        const index = this.#queue.indexOf(waiting);
        if (index >= 0) this.#queue.splice(index, 1);
        resolve(undefined);
      };
      const waiting: Waiting = {
        owner,
        go: (release) => {
          signal.removeEventListener("abort", leave);
          resolve(release);
        },
      };
      this.#queue.push(waiting);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  #fits({ repository, ip }: WorkOwner): boolean {
    const { total, perRepository, perIp } = this.limits();
    return (
      this.#running < total &&
      (this.#perRepository.get(repository) ?? 0) < perRepository &&
      (this.#perIp.get(ip) ?? 0) < perIp
    );
  }

  #take({ repository, ip }: WorkOwner): () => void {
    this.#running += 1;
    add(this.#perRepository, repository, 1);
    add(this.#perIp, ip, 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#running -= 1;
      add(this.#perRepository, repository, -1);
      add(this.#perIp, ip, -1);
      this.#wake();
    };
  }

  /** The first that fits goes: one busy repository's queue does not hold up the others. */
  #wake(): void {
    for (let index = 0; index < this.#queue.length; ) {
      const waiting = this.#queue[index];
      if (!waiting || this.#running >= this.limits().total) return;
      if (this.#fits(waiting.owner)) {
        this.#queue.splice(index, 1);
        waiting.go(this.#take(waiting.owner));
      } else index += 1;
    }
  }
}

function add(counts: Map<string, number>, key: string, amount: number): void {
  const count = (counts.get(key) ?? 0) + amount;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
