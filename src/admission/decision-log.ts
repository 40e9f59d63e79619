// Collects decision records and writes many in one transaction, so that an event does not pay for its own. They are
// for the operator to read, nothing was promised with them: a crash may lose the newest second of them.

import type { Clock } from "../base/clock.js";
import type { Store } from "../store/port.js";
import { type DecisionRecord, putDecisions } from "./decisions.js";

const pageRecords = 64;
const writeAfterMs = 1_000;
/** Only while the store cannot write: then the newest are not noted. */
const maxWaitingRecords = 10_000;

export interface DecisionLogParts {
  readonly store: Pick<Store, "transact">;
  readonly clock: Clock;
  /** They stay noted and are tried again. */
  readonly failed: (error: unknown) => void;
}

export class DecisionLog {
  #noted: DecisionRecord[] = [];
  #writing: Promise<void> = Promise.resolve();
  #cancelTimer: (() => void) | undefined;

  constructor(readonly parts: DecisionLogParts) {}

  note(record: DecisionRecord): void {
    if (this.#noted.length >= maxWaitingRecords) return;
    this.#noted.push(record);
    if (this.#noted.length === pageRecords) void this.written();
    else this.#cancelTimer ??= this.parts.clock.after(writeAfterMs, () => void this.written());
  }

  /** Resolves when everything noted so far was written, or could not be. */
  written(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const page = this.#noted.splice(0, pageRecords);
    if (page.length === 0) return;
    try {
      await this.parts.store.transact((tx) => putDecisions(tx, page));
    } catch (error) {
      this.#noted.unshift(...page);
      this.parts.failed(error);
      return;
    }
    await this.#write();
  }
}
