// One negentropy session with a peer, against our own store (event-sync.md "History" 1). What counts as held but is
// not stored is subtracted afterwards, because it must not show in our side of the exchange.

import type { NegentropyMessage, RelayMessage } from "../net/relay-client.js";
import type { EventId } from "../nostr/event.js";
import { type Filter, filterJson } from "../nostr/filter.js";
import { NegentropyClient } from "../nostr/negentropy/reconcile.js";
import type { NegentropyRecords } from "../nostr/negentropy/records.js";
import { meaningOfNegErr } from "./core/closed-reasons.js";
import type { ReconcileFailure, Sides } from "./core/messages.js";

export interface OwnSide {
  /** Undefined when there are more than we care to compare at once. */
  records(filter: Filter, signal: AbortSignal): Promise<NegentropyRecords | undefined>;
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
  | ({ readonly ok: true; readonly peerMissing: readonly EventId[]; readonly sides: Sides } & SortedIds)
  | { readonly ok: false; readonly kind: ReconcileFailure; readonly text: string };

interface ReconciliationHooks {
  send(message: NegentropyMessage): void;
  /** NEG-OPEN was sent; a message came and was answered; `ours`: the relay has said all, our own store is asked. */
  progress(ours: boolean): void;
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
      const records = await this.own.records(filter, this.#stop.signal);
      if (this.#stop.signal.aborted) return;
      if (!records) return this.#end({ ok: false, kind: "too-many", text: "our own records are too many" });
      this.#client = new NegentropyClient(records, { frameBytes, maxNeed: Number.POSITIVE_INFINITY });
      const opening = Buffer.from(this.#client.initiate()).toString("hex");
      this.hooks.send(["NEG-OPEN", this.session, filterJson(filter), opening]);
      // The relay's silence is counted from here, not from when we began to read our own store.
      this.hooks.progress(false);
    } catch (error) {
      this.#fault(error);
    }
  }

  /** What the relay says under the name of this session. */
  heard(message: RelayMessage): void {
    if (message.type === "NEG-MSG") this.onMessage(message.message);
    else if (message.type === "NEG-ERR" || message.type === "CLOSED") this.onRefused(message.text);
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
      this.hooks.progress(false);
      return;
    }
    const compared = this.#client.compared();
    this.#client = undefined;
    this.hooks.send(["NEG-CLOSE", this.session]);
    this.hooks.progress(true);
    const sides = { ...compared, theyLack: this.#peerMissing.length };
    this.own.sort(this.#missing).then(
      (sorted) => this.#end({ ok: true, ...sorted, peerMissing: this.#peerMissing, sides }),
      (error) => this.#fault(error),
    );
  }

  onRefused(text: string): void {
    // Before it is asked, and after it has said all, the relay can refuse nothing.
    if (this.#client) this.#end({ ok: false, kind: meaningOfNegErr(text), text });
  }

  /** Our side wants no more of it. */
  stop(): void {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    this.hooks.send(["NEG-CLOSE", this.session]);
  }

  /** Our own store failed: nothing the relay answers for. */
  #fault(error: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.hooks.fault(error);
    this.#end({ ok: false, kind: "ours", text: "our own store cannot be read" });
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
