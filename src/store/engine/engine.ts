// The store, whatever it keeps things in: one engine over a backend, and the feed of its changes.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../../base/clock.js";
import type { VerifiedEvent } from "../../nostr/event.js";
import type { Filter } from "../../nostr/filter.js";
import type { TimedIds } from "../../nostr/negentropy/records.js";
import type {
  BeforePage,
  Commit,
  FeedEntry,
  FeedSubscription,
  Sequence,
  Store,
  StoreStats,
  Transaction,
  TransactOptions,
} from "../port.js";
import type { Backend } from "./backend.js";
import { MergedStreams } from "./candidates.js";
import { Content, type Layers } from "./content.js";
import { collectTimedIds } from "./counting.js";
import { Slice } from "./query.js";
import { Reading, UnmarkedAuthors } from "./reading.js";
import { expiring } from "./row.js";
import { type Order, OwnOrder, View } from "./view.js";
import { Writer } from "./writer.js";

const defaultMaxQueuedWorks = 20_000;
const sweptATime = 500;
const dayMs = 86_400_000;

interface EngineOptions {
  readonly clock: Clock;
  readonly maxQueuedWorks?: number | undefined;
  /** An order that other machines share; without it the store has its own. */
  readonly order?: ((view: View) => Order) | undefined;
}

export class EngineStore extends Reading implements Store {
  readonly #writer: Writer;
  readonly #feed: Feed;
  readonly #view: View;
  readonly #order: Order;
  #isClosed = false;
  #isVanishing = false;
  /** Where the feed stood when removals were last forgotten. */
  #before: Sequence;
  #stopForgetting: () => void = () => undefined;
  #closing: Promise<void> | undefined;

  constructor(
    readonly backend: Backend,
    layers: Layers,
    options: EngineOptions,
  ) {
    const content = new Content(layers, backend);
    const unmarkedAuthors = new UnmarkedAuthors();
    super(content, options.clock, unmarkedAuthors);
    this.#before = backend.position;
    const view = new View(content, unmarkedAuthors, (isForeign) => this.#published(isForeign));
    this.#view = view;
    this.#order = options.order?.(view) ?? new OwnOrder(view);
    this.#feed = new Feed(
      backend,
      () => view.position,
      () => this.#isClosed,
    );
    this.#writer = new Writer({
      view,
      order: this.#order,
      clock: options.clock,
      maxQueuedWorks: options.maxQueuedWorks ?? defaultMaxQueuedWorks,
    });
  }

  get position(): Sequence {
    return this.#view.position;
  }

  protected override get view(): Sequence {
    return this.#view.position;
  }

  protected override get pending(): undefined {
    return undefined;
  }

  protected override get isClosed(): boolean {
    return this.#isClosed;
  }

  /** A machine whose history is another one must not answer from it. */
  protected override assertOpen(): void {
    super.assertOpen();
    if (this.#order.stopped) throw this.#order.stopped;
  }

  get isShared(): boolean {
    return this.#order.isShared;
  }

  transact<T>(work: (tx: Transaction) => Promise<T>, options?: TransactOptions): Promise<T> {
    return this.#writer.transact(work, options);
  }

  /** Brings what other machines have committed into the view. */
  catchUp(): Promise<void> {
    return this.#writer.catchUp();
  }

  upToDate(): Promise<void> | undefined {
    return this.#order.upToDate();
  }

  feed(after: Sequence, signal: AbortSignal, beforePage?: BeforePage): FeedSubscription {
    return this.#feed.subscribe(after, signal, beforePage);
  }

  onCommit(listener: (commit: Commit) => void): () => void {
    return this.#view.onCommit(listener);
  }

  onForeignCommit(follow: (commit: Commit) => Promise<void> | undefined): () => void {
    return this.#view.onForeignCommit(follow);
  }

  async timedIds(filter: Filter, cap: number, signal?: AbortSignal): Promise<TimedIds | undefined> {
    this.assertOpen();
    return collectTimedIds(this.sight(), filter, cap, new Slice(this.clock, this.content.turns), signal);
  }

  async sweepExpired(
    nowSeconds: number,
    alongside?: (tx: Transaction, event: VerifiedEvent) => Promise<void>,
    options?: TransactOptions,
  ): Promise<number> {
    let swept = 0;
    for (;;) {
      const before = swept;
      swept += await this.transact(async (tx) => {
        const streams = new MergedStreams(0, nowSeconds);
        this.content.open(expiring, streams);
        let removed = 0;
        for (let entry = streams.next(); entry && removed < sweptATime; entry = streams.next()) {
          const row = this.content.row(entry.seq, Number.MAX_SAFE_INTEGER);
          if (!row) continue;
          await alongside?.(tx, row.event);
          if (await tx.remove(row.id, "expiration")) removed++;
        }
        return removed;
      }, options);
      if (swept - before < sweptATime) return swept;
    }
  }

  /**
   * Removes what vanishes, step by step, also what the last run left. What stops it (a full disk, the end) is tried again
   * after the next commit.
   */
  resume(): void {
    if (this.#isVanishing || this.content.vanishing.authors.size === 0) return;
    this.#isVanishing = true;
    const over = (): void => {
      this.#isVanishing = false;
    };
    this.#vanishOn().then(over, over);
  }

  /** First what earlier runs removed, then day by day what went before the day (threats row 54). */
  forgetDaily(): void {
    this.backend.forgetRemovals(Math.min(this.#before, this.#feed.passedByAll + 1));
    this.#before = this.#view.position;
    this.#stopForgetting = this.clock.after(dayMs, () => this.forgetDaily());
  }

  get stats(): StoreStats {
    const { events, bytesOnDisk } = this.backend;
    return { events, bytesOnDisk, queuedWorks: this.#writer.queuedWorks };
  }

  async isWritable(): Promise<boolean> {
    if (this.#isClosed || !this.#order.isReady || !(await this.backend.hasRoom())) return false;
    // Whether the shared log can be reached is the order's to say: a database that is away for a moment stops no reader.
    if (this.#writer.lastCommitWorked || this.#order.isShared) return true;
    // A server that is not ready gets no events, so no commit would ever show that the trouble is over.
    return this.transact(async (tx) => tx.setRow("meta", "ready", 1)).then(
      () => true,
      () => false,
    );
  }

  async snapshot(folder: string, atThatMoment: () => void): Promise<number> {
    let copied: Promise<void> | undefined;
    let heldMs = 0;
    await this.#writer.exclusively(async () => {
      const fromMs = this.clock.monotonicMs();
      atThatMoment();
      const { begun, done } = this.backend.copyTo(folder);
      copied = done;
      await begun;
      heldMs = this.clock.monotonicMs() - fromMs;
    });
    await copied;
    return heldMs;
  }

  compact(progress?: (bytes: number) => void): Promise<void> {
    return this.#writer.exclusively(() => this.backend.compact(progress));
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#stopForgetting();
    await this.#writer.close();
    await this.#order.close();
    this.#isClosed = true;
    this.#feed.wake();
    await this.backend.close();
  }

  #published(isForeign: boolean): void {
    this.#feed.wake();
    // The machine that took a request to vanish goes on with it; after its end the leader does.
    if (!isForeign) this.resume();
  }

  async #vanishOn(): Promise<void> {
    const { authors } = this.content.vanishing;
    for (let [next] = authors.keys(); next !== undefined; [next] = authors.keys()) {
      await this.#writer.continueVanishing(next);
      await nextTurn();
    }
  }
}

const pageEntries = 500;
/** A page ends early here: five hundred events may be as many megabytes (threats row 34). */
const pageBytes = 1 << 20;
/** For readers of whom there may be thousands at once. */
const smallPageBytes = 256 * 1024;

interface FeedReader {
  reached: Sequence;
  readonly signal: AbortSignal;
  readonly beforePage: BeforePage | undefined;
}

/**
 * Every reader of the feed reads the log at a pace of its own and waits at its end. Nothing is buffered for anybody, so a
 * slow reader costs nothing; recent changes are still in memory and cost no disk.
 */
class Feed {
  #waiting = new Set<() => void>();
  readonly #readers = new Set<FeedReader>();

  constructor(
    readonly backend: Backend,
    readonly position: () => Sequence,
    readonly isClosed: () => boolean,
  ) {}

  /** There is something new, or the store closes. */
  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const go of waiting) go();
  }

  /** Everybody who reads has passed this number. */
  get passedByAll(): Sequence {
    const reading = [...this.#readers].filter(({ signal }) => !signal.aborted);
    return reading.reduce((least, { reached }) => Math.min(least, reached), this.position());
  }

  subscribe(after: Sequence, signal: AbortSignal, beforePage?: BeforePage): FeedSubscription {
    return { [Symbol.asyncIterator]: () => this.#read({ reached: after, signal, beforePage }) };
  }

  async *#read(reader: FeedReader): AsyncGenerator<readonly FeedEntry[]> {
    this.#readers.add(reader);
    try {
      yield* this.#pages(reader);
    } finally {
      this.#readers.delete(reader);
    }
  }

  async *#pages(reader: FeedReader): AsyncGenerator<readonly FeedEntry[]> {
    const { signal, beforePage } = reader;
    while (!signal.aborted && !this.isClosed()) {
      const position = this.position();
      if (reader.reached >= position) {
        await this.#somethingNew(signal);
        continue;
      }
      const room = beforePage?.();
      if (room) {
        await room;
        if (signal.aborted || this.isClosed()) return;
      }
      const { records, reached: end } = this.backend.log(
        reader.reached,
        position,
        pageEntries,
        beforePage ? smallPageBytes : pageBytes,
      );
      const page = records.map(
        (record): FeedEntry =>
          record.type === "removed"
            ? { type: "removed", ...record.removal }
            : { seq: record.row.seq, type: "stored", event: record.row.event },
      );
      reader.reached = end;
      if (page.length > 0) yield page;
    }
  }

  #somethingNew(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        signal.removeEventListener("abort", go);
        this.#waiting.delete(go);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener("abort", go, { once: true });
    });
  }
}
