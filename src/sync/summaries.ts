// What sync found, in the log, gathered for a few seconds so that a history of fifty thousand events is one line:
// startup INFO, gaps after a reconnect WARN, what peers lack WARN. (The core itself sums up the daily round.)

import type { Clock } from "../base/clock.js";
import type { Logger } from "../config/logging.js";
import type { EventSource, RelayKey } from "./core/messages.js";

export type Summary = "startup" | "reconnect" | "peer-missing";

const quietMs = 5_000;
const sentences: Readonly<Record<Summary, string>> = {
  startup: "history brought new events",
  reconnect: "a reconnect found events that live should have brought",
  "peer-missing": "the relay lacks events that are stored here",
};

export class Summaries {
  readonly #counts = new Map<string, { relay: RelayKey; what: Summary; count: number }>();
  #cancel: () => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  newEvent(relay: RelayKey, source: EventSource): void {
    if (source === "startup" || source === "reconnect") this.add(relay, source, 1);
  }

  add(relay: RelayKey, what: Summary, count: number): void {
    if (count === 0) return;
    const key = `${what} ${relay}`;
    const before = this.#counts.get(key)?.count ?? 0;
    this.#counts.set(key, { relay, what, count: before + count });
    // Restarted by each event, so that it comes when it is quiet.
    this.#cancel();
    this.#cancel = this.clock.after(quietMs, () => this.flush());
  }

  flush(): void {
    this.#cancel();
    for (const { relay, what, count } of this.#counts.values()) {
      this.logger[what === "startup" ? "info" : "warn"]({ relay, count }, sentences[what]);
    }
    this.#counts.clear();
  }
}
