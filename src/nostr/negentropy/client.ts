// The asking side of negentropy (NIP-77). Tells each id once, and ends an exchange with a peer that leads nowhere.

import type { EventId } from "../ids.js";
import { defaultFrameBytes, minFrameBytes, openingMessage, reconcileStep, type WireError } from "./reconcile.js";
import type { NegentropyRecords } from "./records.js";

export interface NegentropyClientOptions {
  /** Longest message we send, in bytes before hex. */
  readonly frameBytes?: number;
  /** Ids the peer may say it has and we lack; more is an error. */
  readonly maxNeed?: number;
  /** Rounds in a row that may teach nothing: ranges are divided by 16, so an honest peer needs few. */
  readonly maxIdleRounds?: number;
}

export type ClientStep =
  | {
      readonly ok: true;
      /** Ids only we have, learned in this step. */
      readonly have: readonly EventId[];
      /** Ids only the peer has, learned in this step. */
      readonly need: readonly EventId[];
      /** What to send next; undefined when both sides are compared. */
      readonly message: Uint8Array | undefined;
    }
  | WireError;

interface Counted {
  readonly count: number;
  readonly fingerprint: string;
}

export class NegentropyClient {
  readonly #records: NegentropyRecords;
  readonly #frameBytes: number;
  readonly #maxNeed: number;
  readonly #maxIdleRounds: number;
  readonly #had = new Set<EventId>();
  readonly #needed = new Set<EventId>();
  #idleRounds = 0;

  constructor(records: NegentropyRecords, options: NegentropyClientOptions = {}) {
    this.#records = records;
    this.#frameBytes = Math.max(minFrameBytes, options.frameBytes ?? defaultFrameBytes);
    this.#maxNeed = options.maxNeed ?? 1_000_000;
    this.#maxIdleRounds = options.maxIdleRounds ?? 64;
  }

  initiate(): Uint8Array {
    return openingMessage(this.#records);
  }

  reconcile(message: Uint8Array): ClientStep {
    const step = reconcileStep(this.#records, "client", this.#frameBytes, message);
    if (!step.ok) return step;
    const have = onlyNew(step.have, this.#had);
    const need = onlyNew(step.need, this.#needed);
    if (this.#needed.size > this.#maxNeed) return { ok: false, error: `the peer lists more than ${this.#maxNeed} ids` };
    const isDone = step.message.length === 1;
    this.#idleRounds = have.length + need.length > 0 ? 0 : this.#idleRounds + 1;
    if (!isDone && this.#idleRounds > this.#maxIdleRounds) {
      return { ok: false, error: `${this.#maxIdleRounds} rounds in a row taught nothing` };
    }
    return { ok: true, have, need, message: isDone ? undefined : step.message };
  }

  /** What both sides hold. The peer's follows from the differences, so it is right only when the exchange has ended. */
  compared(): { readonly ours: Counted; readonly theirs: Counted } {
    const { length: count } = this.#records;
    return {
      ours: { count, fingerprint: this.#records.fingerprint(0, count) },
      theirs: {
        count: count - this.#had.size + this.#needed.size,
        fingerprint: this.#records.fingerprintBut(this.#had, this.#needed),
      },
    };
  }
}

function onlyNew(ids: readonly EventId[], known: Set<EventId>): EventId[] {
  return ids.filter((id) => {
    if (known.has(id)) return false;
    known.add(id);
    return true;
  });
}
