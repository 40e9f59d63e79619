// What relays lack of what is stored here, in the log: gathered for a few seconds, so that the many sessions of one
// comparison are one line. (What we lacked, the core sums up itself.)

import type { Clock } from "../base/clock.js";
import type { Logger } from "../config/logging.js";
import type { RelayKey } from "./core/messages.js";

const quietMs = 5_000;

export class PeerMissing {
  readonly #counts = new Map<RelayKey, number>();
  #cancel: () => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  add(relay: RelayKey, count: number): void {
    if (count === 0) return;
    this.#counts.set(relay, (this.#counts.get(relay) ?? 0) + count);
    // Restarted by each session, so that it comes when it is quiet.
    this.#cancel();
    this.#cancel = this.clock.after(quietMs, () => this.flush());
  }

  flush(): void {
    this.#cancel();
    for (const [relay, count] of this.#counts) {
      this.logger.warn({ relay, count }, "the relay lacks events that are stored here");
    }
    this.#counts.clear();
  }
}
