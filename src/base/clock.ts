// Time as an argument, work by the clock, and turns on the event loop. Rooms take a Clock; nothing below main reads the
// system's time by itself.

export interface Clock {
  /** Wall-clock milliseconds since 1970: may jump; for timestamps people see and `created_at`. */
  nowMs(): number;
  /** Milliseconds that never go back: for time-outs, back-off and durations. */
  monotonicMs(): number;
  /** Calls back once after `delayMs`. The returned function cancels. Timers never keep the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    // setTimeout overflows above 2^31-1 ms and would fire at once.
    const timer = setTimeout(callback, Math.min(delayMs, 2 ** 31 - 1));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

export const unixSeconds = (clock: Clock): number => Math.floor(clock.nowMs() / 1000);

interface Repeated {
  /** Resolves when the turn under way, if any, has ended. */
  close(): Promise<void>;
}

/** Work that comes round: the next turn begins a while after the last one ended, so it never piles up on itself. */
export function repeatedly(
  clock: Clock,
  everyMs: () => number,
  work: () => Promise<void>,
  onFault: (error: unknown) => void,
): Repeated {
  let closed = false;
  let running: Promise<void> = Promise.resolve();
  let cancel = clock.after(everyMs(), turn);

  function turn(): void {
    running = work()
      .catch(onFault)
      .finally(() => {
        if (!closed) cancel = clock.after(everyMs(), turn);
      });
  }

  return {
    async close() {
      closed = true;
      cancel();
      await running;
    },
  };
}

const momentMs = 3;

/** Work that could hold up the event loop takes turns on it: each turn of the loop resumes one waiter, however many wait. */
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

/**
 * Work that is gathered for a moment and then done together, such as rows that nobody waits for: many in one transaction,
 * runs one after the other. A crash loses what was gathered.
 */
export class LateWork {
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `work` does all that is gathered by then, and deals with its own failures. */
  constructor(
    private readonly clock: Clock,
    private readonly delayMs: number,
    private readonly work: () => Promise<void>,
  ) {}

  /** There is something to do: it is begun no later than `delayMs` from now. */
  later(): void {
    this.#cancel ??= this.clock.after(this.delayMs, () => void this.now());
  }

  /** Resolves when what is gathered so far was done. */
  now(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running = this.#running.then(this.work);
    return this.#running;
  }
}

export interface Keeping {
  readonly clock: Clock;
  readonly keptMs: () => number;
}

/**
 * An answer that is the same for everybody, worked out at most once in a while (a second) however often it is asked for
 * (threats row 53). If it is a promise, a request that comes while it is being worked out waits for the same one.
 */
export function keptFor<T>({ clock, keptMs }: Keeping, work: () => T): () => T {
  let kept: { readonly answer: T; readonly untilMs: number } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (!kept || nowMs >= kept.untilMs) kept = { untilMs: nowMs + keptMs(), answer: work() };
    return kept.answer;
  };
}

const soonMs = 50;

/** Works that ride on a store's next commit are about to be waited for: if there is none in a moment, this makes one. */
export const commitSoon = (
  store: { transact(work: () => Promise<undefined>): Promise<unknown> },
  clock: Clock,
): (() => void) => clock.after(soonMs, () => void store.transact(async () => undefined).catch(() => undefined));
