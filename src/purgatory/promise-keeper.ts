// Refs that were promised in the journal are synced to disk in the background, many at a time; then the promises go.
// What could not be kept is tried again, always together with what was promised there since: an old promise that
// outlives a newer one would be written over it at the next start (threats.md row 51).

import type { Clock } from "../base/clock.js";
import type { RepositoryAddress } from "../git/address.js";
import type { Repositories } from "../git/repositories.js";
import type { Transaction } from "../store/port.js";
import type { Journal } from "./journal.js";

const delayMs = 1_000;
const longestDelayMs = 60_000;

interface Made {
  readonly key: string;
  /** Written together with the end of the promise. */
  readonly besides: ((tx: Transaction) => Promise<void>) | undefined;
}

interface Promises {
  readonly address: RepositoryAddress;
  /** In the order in which they were made. */
  readonly made: readonly Made[];
}

export class PromiseKeeper {
  readonly #waiting = new Map<string, Promises>();
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();
  #nextDelayMs = delayMs;

  constructor(
    private readonly repositories: Pick<Repositories, "exists" | "open">,
    private readonly journal: Pick<Journal, "kept">,
    private readonly clock: Clock,
    private readonly failed: (error: unknown) => void,
  ) {}

  add(address: RepositoryAddress, key: string, besides?: (tx: Transaction) => Promise<void>): void {
    const made = this.#waiting.get(address.key)?.made ?? [];
    this.#waiting.set(address.key, { address, made: [...made, { key, besides }] });
    this.#arm();
  }

  #arm(): void {
    this.#cancel ??= this.clock.after(this.#nextDelayMs, () => void this.flush());
  }

  /** Keeps everything promised so far. */
  flush(): Promise<void> {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#running = this.#running.then(() => this.#keep()).catch(this.failed);
    return this.#running;
  }

  async #keep(): Promise<void> {
    const batch = [...this.#waiting.values()];
    this.#waiting.clear();
    const synced: Promises[] = [];
    let fault: { readonly error: unknown } | undefined;
    for (const promises of batch) {
      try {
        const { address } = promises;
        if (await this.repositories.exists(address)) await this.repositories.open(address).syncRefs();
        synced.push(promises);
      } catch (error) {
        fault = { error };
        this.#again(promises);
      }
    }
    const made = synced.flatMap((promises) => promises.made);
    try {
      await this.journal.kept(
        made.map(({ key }) => key),
        async (tx) => {
          for (const { besides } of made) await besides?.(tx);
        },
      );
    } catch (error) {
      fault = { error };
      for (const promises of synced) this.#again(promises);
    }
    this.#nextDelayMs = fault ? Math.min(longestDelayMs, this.#nextDelayMs * 2) : delayMs;
    if (!fault) return;
    this.#arm();
    throw fault.error;
  }

  #again({ address, made }: Promises): void {
    const since = this.#waiting.get(address.key)?.made ?? [];
    this.#waiting.set(address.key, { address, made: [...made, ...since] });
  }
}
