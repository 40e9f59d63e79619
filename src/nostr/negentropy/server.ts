// The answering side of negentropy (NIP-77): stateless between messages but for its records.

import { defaultFrameBytes, minFrameBytes, reconcileStep, type WireError } from "./reconcile.js";
import type { NegentropyRecords } from "./records.js";

export interface NegentropyServerOptions {
  /** Longest answer, in bytes before hex. */
  readonly frameBytes?: number;
  /** Longest message taken: about 50,000 fingerprints, or 100 ms of work. Clients in use send at most 500 kB. */
  readonly maxMessageBytes?: number;
}

export type ServerAnswer = { readonly ok: true; readonly message: Uint8Array } | WireError;

export class NegentropyServer {
  readonly #records: NegentropyRecords;
  readonly #frameBytes: number;
  readonly #maxMessageBytes: number;

  constructor(records: NegentropyRecords, options: NegentropyServerOptions = {}) {
    this.#records = records;
    this.#frameBytes = Math.max(minFrameBytes, options.frameBytes ?? defaultFrameBytes);
    this.#maxMessageBytes = options.maxMessageBytes ?? 1_000_000;
  }

  reconcile(message: Uint8Array): ServerAnswer {
    if (message.length > this.#maxMessageBytes) {
      return { ok: false, error: `a message may have at most ${this.#maxMessageBytes} bytes` };
    }
    const step = reconcileStep(this.#records, "server", this.#frameBytes, message);
    return step.ok ? { ok: true, message: step.message } : step;
  }
}
