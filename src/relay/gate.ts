// Lets a few through at a time; the rest wait in order. What waits is bounded by whoever asks (open subscriptions).

export class Gate {
  #free: number;
  #waiting: (() => void)[] = [];

  constructor(width: number) {
    this.#free = width;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
