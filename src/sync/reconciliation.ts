// One negentropy session with a peer, against our own store (event-sync.md "History" 1). What counts as held but is
// not stored is subtracted afterwards, because it must not show in our side of the exchange.

import type { Filter } from "../nostr/filter.js";
import { filterJson } from "../nostr/filter.js";
import type { EventId } from "../nostr/ids.js";
import { NegentropyClient } from "../nostr/negentropy/client.js";
import { NegentropyRecords } from "../nostr/negentropy/records.js";
import type { TimedIds } from "../store/port.js";
import { meaningOfNegErr } from "./core/answers.js";
import type { ReconcileFailure } from "./core/messages.js";

export interface OwnSide {
  /** Undefined when there are more than we care to compare at once. */
  timedIds(filter: Filter, signal: AbortSignal): Promise<TimedIds | undefined>;
  sort(ids: readonly EventId[]): Promise<SortedIds>;
}

/** What a peer has and our side of the exchange did not show. */
export interface SortedIds {
  /** Neither stored nor held nor remembered. */
  readonly missing: readonly EventId[];
  /** Held here until their git data comes. */
  readonly waiting: readonly EventId[];
}

export type ReconcileResult =
  | ({ readonly ok: true; readonly peerMissing: readonly EventId[] } & SortedIds)
  | { readonly ok: false; readonly kind: ReconcileFailure; readonly text: string };

export interface ReconciliationHooks {
  send(message: readonly unknown[]): void;
  progress(): void;
  ended(result: ReconcileResult): void;
  fault(error: unknown): void;
}

/** Below what relays take as one message, with its hex. */
const frameBytes = 60_000;

export class Reconciliation {
  readonly #stop = new AbortController();
  readonly #missing: EventId[] = [];
  readonly #peerMissing: EventId[] = [];
  #client: NegentropyClient | undefined;

  constructor(
    readonly session: string,
    private readonly maxMissing: number,
    private readonly own: OwnSide,
    private readonly hooks: ReconciliationHooks,
  ) {}

  async open(filter: Filter): Promise<void> {
    try {
      const records = await this.own.timedIds(filter, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      if (!records) return this.#end({ ok: false, kind: "too-many", text: "our own records are too many" });
      this.#client = new NegentropyClient(new NegentropyRecords(records), {
        frameBytes,
        maxNeed: Number.POSITIVE_INFINITY,
      });
      const opening = Buffer.from(this.#client.initiate()).toString("hex");
      this.hooks.send(["NEG-OPEN", this.session, filterJson(filter), opening]);
      // The relay's silence is counted from here, not from when we began to read our own store.
      this.hooks.progress();
    } catch (error) {
      if (!this.#stop.signal.aborted) this.hooks.fault(error);
    }
  }

  onMessage(message: Uint8Array): void {
    if (!this.#client || this.#stop.signal.aborted) return;
    const step = this.#client.reconcile(message);
    if (!step.ok) {
      this.#fail("failed", step.error);
      return;
    }
    for (const id of step.need) this.#missing.push(id);
    for (const id of step.have) this.#peerMissing.push(id);
    if (this.#missing.length > this.maxMissing) {
      this.#fail("too-many", "the peer has too many we lack");
      return;
    }
    if (step.message) {
      this.hooks.send(["NEG-MSG", this.session, Buffer.from(step.message).toString("hex")]);
      this.hooks.progress();
      return;
    }
    this.#client = undefined;
    this.hooks.send(["NEG-CLOSE", this.session]);
    this.own.sort(this.#missing).then(
      (sorted) => this.#end({ ok: true, ...sorted, peerMissing: this.#peerMissing }),
      (error) => this.hooks.fault(error),
    );
  }

  /** NEG-ERR, or a CLOSED that names this session. */
  onRefused(text: string): void {
    this.#end({ ok: false, kind: meaningOfNegErr(text), text });
  }

  /** Our side wants no more of it. */
  stop(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.hooks.send(["NEG-CLOSE", this.session]);
  }

  #fail(kind: ReconcileFailure, text: string): void {
    this.hooks.send(["NEG-CLOSE", this.session]);
    this.#end({ ok: false, kind, text });
  }

  #end(result: ReconcileResult): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.hooks.ended(result);
  }
}
