// The order of commits that several machines share: PostgreSQL's table `change` is the log, the engine's view follows it.
// A commit: catch up → lock → read from the own last row on and apply the rest → run the works → append one row → COMMIT →
// apply the own effects by the code that applies foreign ones. Nothing is ever taken back that may be in the log.

import { randomUUID } from "node:crypto";
import type { Clock } from "../../base/clock.js";
import { Looks } from "../../cluster/looks.js";
import type { DatabasePlace, Session } from "../../cluster/session.js";
import type { Applied } from "../engine/backend.js";
import { type Effects, separated, type TableChanges, withLocal } from "../engine/effects.js";
import { type Batch, type Order, UnfittingEffectsError, type View } from "../engine/view.js";
import { SharedLogError } from "../port.js";
import { applyChanges, NewerFormatError } from "./apply-changes.js";
import { encodeBody, maxBodyBytes } from "./body.js";
import { ChangeLog, type LoggedChange } from "./change-log.js";
import { LogSessions, orUnreachable } from "./log-sessions.js";

/** A page that is read without the lock, and what may be applied while it is held. */
const freePage = { rows: 500, bytes: 16 * 2 ** 20 };
const lockedPage = { rows: 50, bytes: 2 * 2 ** 20 };
const pollMs = 250;
/** An outcome that stays unknown for longer is answered as unknown. */
const unknownMs = 10_000;
const retryMs = 250;

export interface SharedOrderParts {
  readonly view: View;
  readonly place: DatabasePlace;
  readonly clock: Clock;
  readonly node: string;
  /** How this machine writes bodies. */
  readonly format: () => number;
  /** Lets the writer catch up between works. */
  readonly catchUp: () => Promise<void>;
  /** The database's clock showed this, since `askedMs` of the steady clock. */
  readonly measured?: (databaseMs: number, askedMs: number) => void;
  /** The machine must stop serving and build its view anew. */
  readonly diverged?: (error: SharedLogError) => void;
  /** A commit waited for its turn and held it. */
  readonly turned?: (waitMs: number, holdMs: number) => void;
  /** Stops at a step of a commit; for tests that end the process there. */
  readonly at?: (step: CommitStep) => Promise<void> | undefined;
}

export type CommitStep = "locked" | "appended" | "committed" | "applied";

/** What operators watch. */
export interface OrderFacts {
  readonly applied: number;
  readonly newest: number;
  readonly staleAnswers: number;
  readonly unknownCommits: number;
  readonly lockWaitMs: number;
  readonly lockHoldMs: number;
}

export class SharedOrder implements Order {
  readonly ridersWaitMs = 5_000;
  readonly isShared = true;
  readonly batchBytes = maxBodyBytes / 4;
  readonly log: ChangeLog;
  readonly #sessions: LogSessions;
  readonly #looks: Looks;
  #stopped: SharedLogError | undefined;
  #isBehind = false;
  /** The disk of this machine could not follow; it is tried again with each look. */
  #isFailing = false;
  #epoch: number | undefined;
  #newest = 0;
  #unknownCommits = 0;
  #lockWaitMs = 0;
  #lockHoldMs = 0;
  #stopPolling: () => void = () => undefined;
  #isClosed = false;

  constructor(private readonly parts: SharedOrderParts) {
    const { place, clock, node } = parts;
    this.log = new ChangeLog(place);
    this.#sessions = new LogSessions({
      ...{ place, clock, node },
      hinted: () => this.#hint(),
      listen: (session) => this.log.listen(session),
    });
    this.#looks = new Looks(clock, () => this.#look());
    this.#poll();
  }

  get stopped(): SharedLogError | undefined {
    return this.#stopped;
  }

  get isReady(): boolean {
    return !this.#stopped && !this.#isFailing && this.#looks.isReady;
  }

  get epoch(): number | undefined {
    return this.#epoch;
  }

  get facts(): OrderFacts {
    const [lockWaitMs, lockHoldMs] = [this.#lockWaitMs, this.#lockHoldMs];
    const { staleAnswers } = this.#looks;
    const applied = this.#applied.n;
    return {
      ...{ applied, staleAnswers, lockWaitMs, lockHoldMs },
      newest: Math.max(this.#newest, applied),
      unknownCommits: this.#unknownCommits,
    };
  }

  upToDate(): Promise<void> {
    return this.#looks.upToDate();
  }

  mayRunAgain(error: unknown): boolean {
    return error instanceof SharedLogError && error.trouble === "too-large";
  }

  async commit(run: () => Promise<Batch | undefined>): Promise<void> {
    if (this.#stopped) throw this.#stopped;
    const { clock, view } = this.parts;
    const askedMs = clock.monotonicMs();
    const session = await this.#takeTurn();
    const lockedMs = clock.monotonicMs();
    this.#lockWaitMs = lockedMs - askedMs;
    let batch: Batch | undefined;
    try {
      await this.parts.at?.("locked");
      batch = await run();
    } catch (error) {
      await this.#giveTurnBack(session);
      throw error;
    }
    const { shared, local } = batch ? separated(batch.effects()) : {};
    // The batch's rows come back as effects: own changes take the same way as foreign ones.
    batch?.rollBackTo(0);
    if (!shared) {
      await this.#giveTurnBack(session);
      if (local) await view.applyLocal(local);
      return;
    }
    const written = await this.#append(session, shared);
    this.#lockHoldMs = clock.monotonicMs() - lockedMs;
    this.parts.turned?.(this.#lockWaitMs, this.#lockHoldMs);
    await this.parts.at?.("committed");
    await this.#applyOwn(written, shared, local);
    await this.parts.at?.("applied");
  }

  /** Everything that is in the log now, page by page, without the lock. */
  async catchUp(): Promise<void> {
    if (this.#stopped) throw this.#stopped;
    for (;;) {
      this.#isBehind = false;
      const session = await this.#sessions.reading();
      const from = this.#applied;
      const page = await orUnreachable(this.log.read(session, from.n, freePage));
      await this.#follow(page.changes, from, session);
      this.#newest = Math.max(this.#newest, page.newest);
      if (this.#applied.n >= page.newest) return;
      await this.parts.view.content.backend.roomInMemory();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#stopPolling();
    await this.#sessions.close();
  }

  get #applied(): Applied {
    const { applied } = this.parts.view;
    if (!applied) throw new Error("a view of a shared log begins with a row of it");
    return applied;
  }

  /** A transaction that holds the lock, with a view that has everything before it. */
  async #takeTurn(): Promise<Session> {
    for (;;) {
      if (this.#isBehind) await this.catchUp();
      const session = await this.#sessions.committing();
      let isShort = false;
      try {
        await orUnreachable(this.log.lock(session));
        const from = this.#applied;
        const page = await orUnreachable(this.log.read(session, from.n, lockedPage));
        this.#epoch = page.epoch;
        isShort = (page.changes.at(-1)?.n ?? -1) >= page.newest;
        if (isShort) await this.#follow(page.changes, from, session);
      } catch (error) {
        await this.#sessions.dropCommitting();
        throw error;
      }
      if (isShort) return session;
      await this.#giveTurnBack(session);
      await this.catchUp();
    }
  }

  async #giveTurnBack(session: Session): Promise<void> {
    await session.run("ROLLBACK").catch(() => this.#sessions.dropCommitting());
  }

  /** Resolves when the row is known to be in the log; rejects when it is known not to be, or when nobody knows. */
  async #append(session: Session, effects: Effects): Promise<Applied> {
    const { clock, node } = this.parts;
    const body = encodeBody(effects);
    if (!body) {
      await this.#giveTurnBack(session);
      throw new SharedLogError(
        "too-large",
        `this is more than the servers of a cluster can store at once (${maxBodyBytes / 2 ** 20} MiB): send it in smaller parts, for instance fewer refs in one push`,
      );
    }
    const row = { n: this.#applied.n + 1, token: randomUUID() };
    try {
      const askedMs = clock.monotonicMs();
      const facts = { format: this.parts.format(), node, position: effects.position, body };
      const databaseMs = await this.log.append(session, row, facts);
      this.parts.measured?.(databaseMs, askedMs);
      await this.parts.at?.("appended");
    } catch (error) {
      // Nobody said COMMIT: it is not in the log, whatever happened.
      await this.#sessions.dropCommitting();
      return orUnreachable(Promise.reject(error));
    }
    try {
      const command = await session.run("COMMIT");
      if (command === "COMMIT") return row;
    } catch {
      await this.#sessions.dropCommitting();
      await this.#learnOutcome(row);
      return row;
    }
    throw new SharedLogError("unreachable", "the database took the change back: try again in a minute");
  }

  /**
   * The COMMIT was sent and not answered. The old backend holds the lock until it ends, so the lock is taken first: who
   * looks without it may find nothing, and the row comes a second later.
   */
  async #learnOutcome({ n, token }: Applied): Promise<void> {
    const { clock } = this.parts;
    this.#unknownCommits += 1;
    const untilMs = clock.monotonicMs() + unknownMs;
    for (let leftMs = unknownMs; leftMs > 0; leftMs = untilMs - clock.monotonicMs()) {
      let found: string | undefined;
      try {
        const session = await this.#sessions.committing();
        await this.log.lock(session, leftMs);
        found = await this.log.tokenAt(session, n);
        await this.#giveTurnBack(session);
      } catch {
        await this.#sessions.dropCommitting();
        await new Promise<void>((resolve) => clock.after(retryMs, resolve));
        continue;
      }
      if (found === token) return;
      throw new SharedLogError("unreachable", "the database was lost before it took the change: try again");
    }
    throw new SharedLogError(
      "unknown",
      "the database was lost while it stored this, and whether it did is not known: look, and send it again if it is missing",
    );
  }

  async #applyOwn(applied: Applied, effects: Effects, local: TableChanges | undefined): Promise<void> {
    try {
      await this.parts.view.apply(withLocal(effects, local), { applied });
      this.#isFailing = false;
    } catch (error) {
      this.#isFailing = true;
      // The log holds the change: it is applied with the next look, and never run again.
      throw new SharedLogError("behind", `it is stored, but this server cannot follow: ${String(error)}`);
    }
  }

  async #follow(changes: readonly LoggedChange[], from: Applied, session: Session): Promise<void> {
    const [own, ...others] = changes;
    if (own?.n !== from.n || own.token !== from.token) return this.#diverge(await this.#whatDiverged(session, from));
    try {
      await applyChanges(this.parts.view, from.n, others);
    } catch (error) {
      if (error instanceof UnfittingEffectsError || error instanceof RangeError) return this.#diverge(error.message);
      if (error instanceof NewerFormatError) return this.#stop(error.message);
      this.#isFailing = true;
      throw this.#asTrouble(error);
    }
    this.#isFailing = false;
  }

  /** A full disk keeps its own error. */
  #asTrouble(error: unknown): unknown {
    if (this.parts.view.content.backend.isFull(error)) return error;
    return new SharedLogError("unreachable", `this server cannot follow the shared log: ${String(error)}`);
  }

  async #whatDiverged(session: Session, { n, token }: Applied): Promise<string> {
    const { oldest, newest } = await orUnreachable(this.log.ends(session));
    if (oldest > n) return `this server's view ends at change ${n}, and the log begins at ${oldest}`;
    if (newest < n) return `this server's view has change ${n}, and the log ends at ${newest}`;
    return `change ${n} of the log is not the one this server has (${token})`;
  }

  #diverge(what: string): never {
    return this.#stop(`${what}: the view is built anew at the next start`);
  }

  #stop(sentence: string): never {
    const error = new SharedLogError("diverged", sentence);
    if (!this.#stopped) {
      this.#stopped = error;
      this.parts.diverged?.(error);
    }
    throw error;
  }

  async #look(): Promise<void> {
    if (this.#stopped) throw this.#stopped;
    const session = await this.#sessions.reading();
    const newest = await orUnreachable(this.log.newest(session));
    this.#newest = newest;
    if (newest !== this.#applied.n || this.#isFailing) await this.parts.catchUp();
  }

  #hint(): void {
    if (this.#isClosed || this.#stopped) return;
    this.#isBehind = true;
    this.parts.catchUp().catch(() => undefined);
  }

  /** Hints may be lost; this is not. */
  #poll(): void {
    this.#stopPolling = this.parts.clock.after(pollMs, () => {
      void this.#looks.poll().then(() => {
        if (!this.#isClosed && !this.#stopped) this.#poll();
      });
    });
  }
}
