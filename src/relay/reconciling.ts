// NEG-OPEN, NEG-MSG, NEG-CLOSE (NIP-77, server side; threats row 26): the reconciliations of one connection.

import type { Filter } from "../nostr/filter.js";
import { refuse } from "../nostr/refusals.js";
import { type Connection, NegentropySession, noLongerWanted } from "./connection.js";
import { negErrorBy } from "./messages.js";

/** An open reconciliation; `session` comes when its records are read. */
interface Open {
  readonly stop: AbortController;
  session?: NegentropySession;
}

export class Reconciling {
  readonly #connection: Connection;
  readonly #open = new Map<string, Open>();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async open(id: string, filter: Filter, message: Uint8Array): Promise<void> {
    const { outbox, parts, queries, records } = this.#connection;
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
    const open: Open = { stop: new AbortController() };
    this.#open.set(id, open);
    try {
      const items = await queries.pass(() => parts.store.timedIds(filter, cap, open.stop.signal));
      if (this.#open.get(id) !== open) return;
      if (!items) return this.#fail(id, refuse("too-many", `this filter matches more than ${cap} records: narrow it`));
      if (!records.take(items.length, limits.negentropyTotalMaxRecords)) {
        return this.#fail(id, refuse("too-many", "too many reconciliations are under way: try again later"));
      }
      const nowMs = parts.clock.monotonicMs();
      open.session = new NegentropySession(items, limits.negentropyMaxFrameBytes, parts.negentropy, nowMs);
    } catch (error) {
      if (this.#open.get(id) === open) this.#fail(id, this.#connection.failed(error));
      return;
    }
    this.continue(id, message);
  }

  continue(id: string, message: Uint8Array): void {
    const { outbox, parts } = this.#connection;
    const session = this.#open.get(id)?.session;
    if (!session) {
      outbox.send({ type: "NEG-ERR", subscription: id, text: "closed: this reconciliation is not open" });
      return;
    }
    const result = session.reconcile(message, parts.clock.monotonicMs());
    if (result.ok) outbox.send({ type: "NEG-MSG", subscription: id, message: result.message });
    else this.#fail(id, refuse("bad-message", result.error));
  }

  end(id: string): void {
    const open = this.#open.get(id);
    if (!open) return;
    this.#open.delete(id);
    open.stop.abort(noLongerWanted);
    if (open.session) this.#connection.records.give(open.session.records);
  }

  /** Ends those whose peer has not spoken for too long. */
  tick(nowMs: number): void {
    const { outbox, parts } = this.#connection;
    const idleMs = parts.limits.negentropyIdleSecs * 1_000;
    for (const [id, { session }] of this.#open) {
      if (!session || session.idleMs(nowMs) < idleMs) continue;
      this.end(id);
      outbox.send({ type: "NEG-ERR", subscription: id, text: "closed: nothing was heard for too long" });
    }
  }

  close(): void {
    for (const id of [...this.#open.keys()]) this.end(id);
  }

  #fail(id: string, refusal: ReturnType<typeof refuse>): void {
    this.end(id);
    this.#connection.outbox.send(negErrorBy(id, refusal));
  }
}
