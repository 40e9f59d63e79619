// Work that could hold up the event loop takes turns on it: each turn of the loop resumes one who waits, however many do.

const momentMs = 3;

export class LoopTurns {
  readonly #resting: (() => void)[] = [];
  /** When the first came in this turn of the loop. */
  #begunMs: number | undefined;

  /** Resolves in a later turn, after all who came before. */
  rest(): Promise<void> {
    return new Promise((resolve) => {
      this.#resting.push(resolve);
      if (this.#resting.length === 1) setImmediate(() => this.#resumeOne());
    });
  }

  /** Early in a turn of the loop the caller goes at once (undefined); later it waits for a turn of its own. */
  begin(nowMs: number): Promise<void> | undefined {
    if (this.#resting.length > 0) return this.rest();
    return this.isLate(nowMs) ? this.rest() : undefined;
  }

  /** Whether more than a moment of this turn of the loop has passed since the first asked. */
  isLate(nowMs: number): boolean {
    if (this.#begunMs === undefined) {
      this.#begunMs = nowMs;
      setImmediate(() => {
        this.#begunMs = undefined;
      });
    }
    return nowMs - this.#begunMs > momentMs;
  }

  #resumeOne(): void {
    this.#resting.shift()?.();
    // An immediate made by an immediate runs in the next turn, after what has arrived meanwhile.
    if (this.#resting.length > 0) setImmediate(() => this.#resumeOne());
  }
}
