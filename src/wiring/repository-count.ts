// How many repositories are served: counted at start, then kept up by what commits change.

import { catalogueRows, isReleased } from "../admission/catalogue.js";
import { kinds } from "../nostr/kinds.js";
import type { Store } from "../store/port.js";

const staleAfterChangesMs = 1_000;

export class RepositoryCount {
  #count = 0;
  #stop: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly store: Store) {}

  get count(): number {
    return this.#count;
  }

  async open(): Promise<void> {
    await this.#recount();
    this.#stop = this.store.onCommit((entries) => {
      const changes = entries.some((entry) =>
        entry.type === "stored" ? entry.event.kind === kinds.announcement : entry.kind === kinds.announcement,
      );
      if (changes) this.#timer ??= setTimeout(() => void this.#recount(), staleAfterChangesMs).unref();
    });
  }

  async #recount(): Promise<void> {
    this.#timer = undefined;
    let count = 0;
    for await (const row of catalogueRows(this.store)) if (isReleased(row)) count++;
    this.#count = count;
  }

  close(): void {
    this.#stop();
    clearTimeout(this.#timer);
  }
}
