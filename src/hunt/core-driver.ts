// Drives the hunt core: hands it inputs with the time, keeps its alarm, carries out its commands. Runs one fetch for each
// `fetch` command and answers with exactly one `fetch-finished`, also after `cancel`. Decides nothing.

import type { Clock } from "../base/clock.js";
import type { HuntCore } from "./core/core.js";
import type { FetchId, FetchResult, HuntCommand, HuntInput } from "./core/messages.js";

export type FetchCommand = Extract<HuntCommand, { readonly type: "fetch" }>;

export interface FetchLeave {
  /** Asks for one more connection; the answer may take until the domain's rate window frees up. */
  readonly mayConnect: (host: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface EndedFetch {
  readonly result: FetchResult;
  /** What follows from it; begun after the core has heard of the result, so that it counts what came. */
  readonly release: () => Promise<void>;
}

export type OtherCommand = Exclude<
  HuntCommand,
  { readonly type: "fetch" | "cancel" | "connection-granted" | "connection-denied" | "wake-at" }
>;

interface DriverParts {
  readonly core: HuntCore;
  readonly clock: Clock;
  readonly fetch: (command: FetchCommand, leave: FetchLeave) => Promise<EndedFetch>;
  readonly obey: (command: OtherCommand) => void;
  readonly onFault: (error: unknown) => void;
}

interface Running {
  readonly abort: AbortController;
  answer: ((granted: boolean) => void) | undefined;
  done: Promise<void>;
}

export class HuntDriver {
  readonly #parts: DriverParts;
  readonly #running = new Map<FetchId, Running>();
  #cancelAlarm: () => void = () => undefined;
  #closed = false;

  constructor(parts: DriverParts) {
    this.#parts = parts;
  }

  get fetchesInFlight(): number {
    return this.#running.size;
  }

  input(input: HuntInput): void {
    if (this.#closed) return;
    for (const command of this.#parts.core.step(input, this.#parts.clock.monotonicMs())) this.#carryOut(command);
  }

  #carryOut(command: HuntCommand): void {
    switch (command.type) {
      case "fetch":
        this.#start(command);
        break;
      case "cancel":
        this.#cancel(command.fetch);
        break;
      case "connection-granted":
      case "connection-denied":
        this.#answer(command.fetch, command.type === "connection-granted");
        break;
      case "wake-at":
        this.#setAlarm(command.atMs);
        break;
      default:
        this.#parts.obey(command);
    }
  }

  #start(command: FetchCommand): void {
    const abort = new AbortController();
    const running: Running = { abort, answer: undefined, done: Promise.resolve() };
    this.#running.set(command.fetch, running);
    const mayConnect = (host: string): Promise<boolean> => {
      if (abort.signal.aborted) return Promise.resolve(false);
      return new Promise((resolve) => {
        running.answer = resolve;
        this.input({ type: "connection-wanted", fetch: command.fetch, host });
      });
    };
    running.done = this.#run(command, { mayConnect, signal: abort.signal });
  }

  async #run(command: FetchCommand, leave: FetchLeave): Promise<void> {
    const { fetch, onFault } = this.#parts;
    let ended: EndedFetch | undefined;
    try {
      ended = await fetch(command, leave);
    } catch (error) {
      onFault(error);
    }
    // A fault of ours or of the disk: the server must not be blamed, the job must not hang.
    const result = ended?.result ?? { arrived: [], refused: [], failure: "cancelled" };
    this.input({ type: "fetch-finished", fetch: command.fetch, result });
    await ended?.release().catch(onFault);
    this.#running.delete(command.fetch);
  }

  #cancel(id: FetchId): void {
    this.#running.get(id)?.abort.abort();
    this.#answer(id, false);
  }

  #answer(id: FetchId, granted: boolean): void {
    const running = this.#running.get(id);
    const answer = running?.answer;
    if (!running || !answer) return;
    running.answer = undefined;
    answer(granted);
  }

  #setAlarm(atMs: number): void {
    const { clock } = this.#parts;
    this.#cancelAlarm();
    this.#cancelAlarm = clock.after(Math.max(0, atMs - clock.monotonicMs()), () => this.input({ type: "tick" }));
  }

  /** Ends every fetch; resolves when their processes are gone. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelAlarm();
    const running = [...this.#running];
    for (const [id] of running) this.#cancel(id);
    await Promise.all(running.map(([, { done }]) => done));
  }
}
