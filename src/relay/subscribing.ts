// REQ and CLOSE: the subscriptions of one connection. Re-using an id replaces the old subscription.

import type { HeldBytes } from "../base/budget/bytes.js";
import type { Filter } from "../nostr/filter.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import type { Connection } from "./connection.js";
import type { RelayLimits } from "./limits.js";
import { closedBy, valuesOf } from "./messages.js";
import { Subscription } from "./subscription.js";

interface Open {
  readonly subscription: Subscription;
  readonly values: number;
  readonly filters: number;
  readonly bytes: number;
}

export class Subscribing {
  readonly #connection: Connection;
  readonly #open = new Map<string, Open>();
  readonly #held: HeldBytes;
  #values = 0;
  #filters = 0;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#held = connection.place.budgets.filters.open(connection.place.ip);
  }

  /** Undefined: it is answered. */
  subscribe(id: string, filters: readonly Filter[]): Promise<void> | undefined {
    const { queries, place } = this.#connection;
    const { outbox, parts, live, visit } = place;
    const limits = parts.limits;
    this.unsubscribe(id);
    const values = filters.reduce((sum, filter) => sum + valuesOf(filter), 0);
    const bytes = subscriptionBytes + filters.reduce((sum, filter) => sum + bytesOf(filter), 0);
    const refusal = this.#mayOpen(filters.length, values, bytes, limits);
    if (refusal) {
      outbox.send(closedBy(id, refusal));
      return undefined;
    }
    const subscription = new Subscription(id, filters, {
      store: parts.store,
      live,
      outbox,
      limits,
      answers: visit.turns,
    });
    this.#open.set(id, { subscription, values, filters: filters.length, bytes });
    this.#values += values;
    this.#filters += filters.length;
    try {
      return queries.run(() => subscription.run())?.catch((error: unknown) => this.#failed(subscription, error));
    } catch (error) {
      this.#failed(subscription, error);
      return undefined;
    }
  }

  #failed(subscription: Subscription, error: unknown): void {
    const { id } = subscription;
    if (this.#open.get(id)?.subscription !== subscription) return;
    this.unsubscribe(id);
    this.#connection.place.outbox.send(closedBy(id, this.#connection.failed(error)));
  }

  unsubscribe(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    this.#values -= open.values;
    this.#filters -= open.filters;
    this.#held.add(-open.bytes);
    open.subscription.close();
  }

  /** The connection stays, without what was open. */
  closeAll(refusal: Refusal): void {
    for (const id of [...this.#open.keys()]) {
      this.unsubscribe(id);
      this.#connection.place.outbox.send(closedBy(id, refusal));
    }
  }

  close(): void {
    for (const id of [...this.#open.keys()]) this.unsubscribe(id);
    this.#held.close();
  }

  /** Takes the bytes, if it may. */
  #mayOpen(filters: number, values: number, bytes: number, limits: RelayLimits): Refusal | undefined {
    if (this.#open.size >= limits.maxSubscriptionsPerConnection) {
      return refuse(
        "too-many",
        `at most ${limits.maxSubscriptionsPerConnection} subscriptions may be open on a connection`,
      );
    }
    if (this.#filters + filters > limits.maxLiveFilters) {
      return refuse("too-many", `the open subscriptions may have ${limits.maxLiveFilters} filters in all`);
    }
    if (this.#values + values > limits.maxLiveValuesPerConnection) {
      return refuse(
        "too-many",
        `the open subscriptions may have ${limits.maxLiveValuesPerConnection} filter values in all`,
      );
    }
    if (this.#held.add(bytes)) return undefined;
    return refuse("too-many", "the open subscriptions of this address, or of all, have no room for more: close some");
  }
}

// What a subscription, a filter and a value cost us, index and strings together; measured, and rounded up.
const subscriptionBytes = 600;
const filterBytes = 800;
const tagNameBytes = 300;
const valueBytes = 150;

function bytesOf(filter: Filter): number {
  let bytes = filterBytes + (filter.search?.length ?? 0) + valuesOf(filter) * valueBytes;
  for (const [name, values] of filter.tags ?? []) {
    bytes += tagNameBytes + name.length;
    for (const value of values) bytes += value.length > 64 ? value.length * 2 : 0;
  }
  return bytes;
}
