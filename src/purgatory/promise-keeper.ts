// Refs that were promised in the journal are synced to disk in the background, many at a time; then the promises go.
// Losing this work loses nothing: the promises stay and are kept at the next start.

import type { Clock } from "../base/clock.js";
import type { RepositoryAddress } from "../git/address.js";
import type { RepositoryStore } from "../git/types.js";
import type { Journal } from "./journal.js";

const delayMs = 1_000;

export class PromiseKeeper {
  readonly #waiting = new Map<string, { address: RepositoryAddress; keys: string[] }>();
  #cancel: (() => void) | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(
    private readonly repositories: RepositoryStore,
    private readonly journal: Journal,
    private readonly clock: Clock,
    private readonly failed: (error: unknown) => void,
  ) {}

  add(address: RepositoryAddress, key: string): void {
    const waiting = this.#waiting.get(address.key) ?? { address, keys: [] };
    waiting.keys.push(key);
    this.#waiting.set(address.key, waiting);
    this.#cancel ??= this.clock.after(delayMs, () => void this.flush());
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
    const kept: string[] = [];
    for (const { address, keys } of batch) {
      if (await this.repositories.exists(address)) await this.repositories.open(address).syncRefs();
      kept.push(...keys);
    }
    await this.journal.kept(kept);
  }
}
