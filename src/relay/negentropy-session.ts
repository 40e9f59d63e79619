// One NIP-77 reconciliation as the relay sees it. The arithmetic is in nostr/negentropy; the records it holds are
// counted here against a budget that all connections share.

import type { TimedIds } from "../store/port.js";

/** The answering side of the negentropy protocol over a fixed set of records. */
interface NegentropyResponder {
  reconcile(
    message: Uint8Array,
  ): { readonly ok: true; readonly message: Uint8Array } | { readonly ok: false; readonly error: string };
}

export type NegentropyFactory = (items: TimedIds, frameLimitBytes: number) => NegentropyResponder;

/** Records held by open reconciliations of all connections. */
export class RecordBudget {
  #held = 0;

  take(records: number, max: number): boolean {
    if (this.#held + records > max) return false;
    this.#held += records;
    return true;
  }

  give(records: number): void {
    this.#held -= records;
  }

  get held(): number {
    return this.#held;
  }
}

export class NegentropySession {
  readonly #responder: NegentropyResponder;
  readonly records: number;
  #usedAtMs: number;

  constructor(items: TimedIds, frameLimitBytes: number, create: NegentropyFactory, nowMs: number) {
    this.records = items.length;
    this.#responder = create(items, frameLimitBytes);
    this.#usedAtMs = nowMs;
  }

  reconcile(message: Uint8Array, nowMs: number): ReturnType<NegentropyResponder["reconcile"]> {
    this.#usedAtMs = nowMs;
    return this.#responder.reconcile(message);
  }

  idleMs(nowMs: number): number {
    return nowMs - this.#usedAtMs;
  }
}
