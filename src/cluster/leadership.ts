// Work that one machine of a cluster does for all of them: it begins when this machine leads and ends when it does not. A
// server that is alone leads from its start to its end.

import type { Clock } from "../base/clock.js";

/** Work that could not begin, because the database was away for a moment, is begun again after this. */
const againMs = 2_000;

interface Led {
  close(): Promise<void>;
}

/** `epoch` grows with each change of leader; undefined for a server that is alone. */
interface Reign {
  readonly epoch: number | undefined;
}

export class Leadership {
  readonly #works = new Set<LedWork>();
  #reign: Reign | undefined;
  /** Called each time it begins to lead. */
  onBegin: () => void = () => undefined;

  /** Without a clock it leads at once and for ever. */
  constructor(private readonly clock?: Clock) {
    if (!clock) this.#reign = { epoch: undefined };
  }

  get leads(): boolean {
    return this.#reign !== undefined;
  }

  begin(epoch?: number): void {
    this.#change({ epoch });
    this.onBegin();
  }

  end(): void {
    this.#change(undefined);
  }

  /**
   * Begins the work each time this machine leads; what fails then is told to `failed`. If it leads now, the first time is
   * waited for, and its failure is the caller's.
   */
  async whileLeading(
    start: (epoch: number | undefined) => Promise<Led>,
    failed: (error: unknown) => void,
  ): Promise<Led> {
    const work: LedWork = new LedWork(
      () => this.#reign,
      start,
      (error) => {
        failed(error);
        this.clock?.after(againMs, () => work.follow());
      },
    );
    await work.first();
    this.#works.add(work);
    work.follow();
    return {
      close: async () => {
        this.#works.delete(work);
        await work.close();
      },
    };
  }

  #change(reign: Reign | undefined): void {
    this.#reign = reign;
    for (const work of this.#works) work.follow();
  }
}

/** Begins and ends one after the other, however quickly the leadership changes. */
class LedWork {
  #led: (Led & { readonly reign: Reign }) | undefined;
  #turn: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(
    private readonly reign: () => Reign | undefined,
    private readonly start: (epoch: number | undefined) => Promise<Led>,
    private readonly failed: (error: unknown) => void,
  ) {}

  async first(): Promise<void> {
    const reign = this.reign();
    if (reign) await this.#begin(reign);
  }

  follow(): void {
    this.#turn = this.#turn.then(() => this.#bringInLine()).catch(this.failed);
  }

  async close(): Promise<void> {
    this.#isOver = true;
    this.follow();
    await this.#turn;
  }

  async #bringInLine(): Promise<void> {
    const wanted = this.#isOver ? undefined : this.reign();
    const led = this.#led;
    // Lost and won again in one breath is another epoch: what was begun in the old one ends.
    if (led && led.reign !== wanted) {
      this.#led = undefined;
      await led.close();
    }
    if (wanted && !this.#led) await this.#begin(wanted);
  }

  async #begin(reign: Reign): Promise<void> {
    const led = await this.start(reign.epoch);
    this.#led = { reign, close: () => led.close() };
  }
}
