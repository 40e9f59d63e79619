// What readers of this machine see: the position, who hears of commits, and the one way a batch becomes part of it, whoever
// made it.

import type { Pubkey } from "../../nostr/event.js";
import type { Commit, Sequence } from "../port.js";
import type { Applied } from "./backend.js";
import { Batch } from "./batch.js";
import type { Content } from "./content.js";
import type { Effects, TableChanges } from "./effects.js";
import type { UnmarkedAuthors } from "./reading.js";

/** Effects that do not fit what is stored here: this machine's history is another one. */
export class UnfittingEffectsError extends Error {
  override readonly name = "UnfittingEffectsError";
}

interface CommitFacts {
  /** The row of the shared log it came from. */
  readonly applied?: Applied;
  readonly isForeign?: boolean;
}

const pubkeyChars = 64;

export class View {
  readonly #listeners = new Set<(commit: Commit) => void>();
  readonly #refreshers = new Set<(commit: Commit) => Promise<void> | undefined>();
  position: Sequence;

  constructor(
    readonly content: Content,
    readonly unmarkedAuthors: UnmarkedAuthors,
    /** Readers see a commit, and listeners have heard of it. */
    readonly published: (isForeign: boolean) => void,
  ) {
    this.position = content.backend.position;
  }

  get applied(): Applied | undefined {
    return this.content.backend.applied;
  }

  onCommit(listener: (commit: Commit) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  beforeNextWork(refresh: (commit: Commit) => Promise<void> | undefined): () => void {
    this.#refreshers.add(refresh);
    return () => this.#refreshers.delete(refresh);
  }

  begin(): Batch {
    return new Batch(this.content, this.position);
  }

  /** Rejects with nothing of it written or seen. */
  async commit(batch: Batch, { applied, isForeign = false }: CommitFacts = {}): Promise<void> {
    const { backend, vanishing } = this.content;
    const change = batch.change();
    if (batch.isLasting || applied) {
      try {
        await backend.commit(applied ? { ...change, applied } : change);
      } catch (error) {
        batch.rollBackTo(0);
        throw error;
      }
    }
    const deletions = change.tables.get("deletions");
    vanishing.follow(deletions);
    // A mark that another machine made must be found here, or a deleted event would be accepted again.
    for (const key of deletions?.keys() ?? []) this.unmarkedAuthors.delete(key.slice(0, pubkeyChars) as Pubkey);
    batch.settle();
    this.position = change.position;
    const commit = batch.commit(isForeign);
    for (const listener of this.#listeners) callSafely(() => listener(commit));
    this.published(isForeign);
    backend.published();
    for (const refresh of this.#refreshers) await refresh(commit);
  }

  /** A commit out of the shared log, own or foreign. */
  async apply(effects: Effects, facts: CommitFacts): Promise<void> {
    const batch = this.begin();
    if (!batch.replay(effects)) {
      batch.rollBackTo(0);
      throw new UnfittingEffectsError(`change ${facts.applied?.n} does not fit the view at position ${this.position}`);
    }
    await this.commit(batch, facts);
  }

  /** Rows of this machine alone. */
  async applyLocal(tables: TableChanges): Promise<void> {
    const batch = this.begin();
    for (const [table, rows] of tables) for (const [key, text] of rows) batch.setRow(table, key, text);
    await this.commit(batch);
  }
}

/** What is committed stays committed: a listener's bug must not look like a failed commit. It ends the process instead. */
function callSafely(call: () => void): void {
  try {
    call();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
