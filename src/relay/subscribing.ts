// REQ and CLOSE: the subscriptions of one connection. Re-using an id replaces the old subscription.

import type { Filter } from "../nostr/filter.js";
import { refuse } from "../nostr/refusals.js";
import type { Connection } from "./connection.js";
import { closedBy, valuesOf } from "./messages.js";
import { Subscription } from "./subscription.js";

interface Open {
  readonly subscription: Subscription;
  readonly values: number;
}

export class Subscribing {
  readonly #connection: Connection;
  readonly #open = new Map<string, Open>();
  #values = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async subscribe(id: string, filters: readonly Filter[]): Promise<void> {
    const { outbox, parts, live, queries } = this.#connection;
    const limits = parts.limits();
    this.unsubscribe(id);
    if (this.#open.size >= limits.maxSubscriptions) {
      const refusal = refuse(
        "too-many",
        `at most ${limits.maxSubscriptions} subscriptions may be open on a connection`,
      );
      return outbox.send(closedBy(id, refusal));
    }
    const values = filters.reduce((sum, filter) => sum + valuesOf(filter), 0);
    if (this.#values + values > limits.maxLiveValues) {
      const refusal = refuse(
        "too-many",
        `the open subscriptions may have ${limits.maxLiveValues} filter values in all`,
      );
      return outbox.send(closedBy(id, refusal));
    }
    const subscription = new Subscription(id, filters, { store: parts.store, live, outbox, limits });
    this.#open.set(id, { subscription, values });
    this.#values += values;
    try {
      await queries.pass(() => subscription.run());
    } catch (error) {
      if (this.#open.get(id)?.subscription !== subscription) return;
      this.unsubscribe(id);
      outbox.send(closedBy(id, this.#connection.failed(error)));
    }
  }

  unsubscribe(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    this.#values -= open.values;
    open.subscription.close();
  }

  close(): void {
    for (const id of [...this.#open.keys()]) this.unsubscribe(id);
  }
}
