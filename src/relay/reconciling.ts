// NEG-OPEN, NEG-MSG, NEG-CLOSE (NIP-77, server side; threats row 26): the reconciliations of one connection. The
// arithmetic is in nostr/negentropy; the records are counted against a budget that all connections share.

import type { Filter } from "../nostr/filter.js";
import { NegentropyServer } from "../nostr/negentropy/reconcile.js";
import { NegentropyRecords } from "../nostr/negentropy/records.js";
import { type Refusal, refuse } from "../nostr/refusals.js";
import { type Connection, noLongerWanted } from "./connection.js";
import { negErrorBy } from "./messages.js";

/** An open reconciliation; `server` comes when its records are read. */
interface Open {
  readonly stop: AbortController;
  server?: NegentropyServer;
  records: number;
  heardAtMs: number;
}

export class Reconciling {
  readonly #connection: Connection;
  readonly #open = new Map<string, Open>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async open(id: string, filter: Filter, message: Uint8Array): Promise<void> {
    const { queries, place } = this.#connection;
    const { outbox, parts, records } = place;
    const limits = parts.limits;
    this.end(id);
    if (this.#open.size >= limits.negentropyMaxSessionsPerConnection) {
      const refusal = refuse(
        "too-many",
        `at most ${limits.negentropyMaxSessionsPerConnection} reconciliations may be open`,
      );
      return outbox.send(negErrorBy(id, refusal));
    }
    const cap = limits.negentropyMaxRecords;
    const open: Open = { stop: new AbortController(), records: 0, heardAtMs: 0 };
    this.#open.set(id, open);
    try {
      const items = await queries.pass(async () => {
        await parts.store.upToDate();
        return parts.store.timedIds(filter, cap, open.stop.signal);
      });
      if (this.#open.get(id) !== open) return;
      if (!items) return this.#fail(id, refuse("too-many", `this filter matches more than ${cap} records: narrow it`));
      if (!records.take(items.length, limits.negentropyTotalMaxRecords)) {
        return this.#fail(id, refuse("too-many", "too many reconciliations are under way: try again later"));
      }
      open.records = items.length;
      open.server = new NegentropyServer(new NegentropyRecords(items), { frameBytes: limits.negentropyMaxFrameBytes });
    } catch (error) {
      if (this.#open.get(id) === open) this.#fail(id, this.#connection.failed(error));
      return;
    }
    this.continue(id, message);
  }

  continue(id: string, message: Uint8Array): void {
    const { outbox, parts } = this.#connection.place;
    const open = this.#open.get(id);
    if (!open?.server) {
      outbox.send({ type: "NEG-ERR", subscription: id, text: "closed: this reconciliation is not open" });
      return;
    }
    open.heardAtMs = parts.clock.monotonicMs();
    const result = open.server.reconcile(message);
    if (result.ok) outbox.send({ type: "NEG-MSG", subscription: id, message: result.message });
    else this.#fail(id, refuse("bad-message", result.error));
  }

  end(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    open.stop.abort(noLongerWanted);
    this.#connection.place.records.give(open.records);
  }

  /** Ends those whose peer has not spoken for too long. */
  tick(nowMs: number): void {
    const { outbox, parts } = this.#connection.place;
    const idleMs = parts.limits.negentropyIdleSecs * 1_000;
    for (const [id, { server, heardAtMs }] of this.#open) {
      if (!server || nowMs - heardAtMs < idleMs) continue;
      this.end(id);
      outbox.send({ type: "NEG-ERR", subscription: id, text: "closed: nothing was heard for too long" });
    }
  }

  closeAll(refusal: Refusal): void {
    for (const id of [...this.#open.keys()]) this.#fail(id, refusal);
  }

  close(): void {
    for (const id of [...this.#open.keys()]) this.end(id);
  }

  #fail(id: string, refusal: Refusal): void {
    this.end(id);
    this.#connection.place.outbox.send(negErrorBy(id, refusal));
  }
}
