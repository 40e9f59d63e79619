// When outboxes hand their frames to the sockets: all of them together, once a turn of the event loop. One event for a
// thousand sockets is one wake-up, not a thousand with Node's own work between each two.

interface Flushable {
  flush(): void;
}

export class FlushTurn {
  #waiting: Flushable[] = [];

  /** Flushes `one` at the end of this turn. Each outbox asks once a turn: what waits is bounded by the connections. */
  add(one: Flushable): void {
    if (this.#waiting.push(one) === 1) setImmediate(this.#run);
  }

  readonly #run = (): void => {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) one.flush();
  };
}
