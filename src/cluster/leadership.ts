// Work that one machine of a cluster does for all of them: it begins when this machine leads and ends when it does not. A
// server that is alone leads from its start to its end.

interface Led {
  close(): Promise<void>;
}

export class Leadership {
  readonly #works = new Set<LedWork>();
  #leads: boolean;

  constructor(leads = true) {
    this.#leads = leads;
  }

  get leads(): boolean {
    return this.#leads;
  }

  begin(): void {
    this.#leads = true;
    for (const work of this.#works) work.follow();
  }

  end(): void {
    this.#leads = false;
    for (const work of this.#works) work.follow();
  }

  /**
   * Begins the work each time this machine leads; what fails then is told to `failed`. If it leads now, the first time is
   * waited for, and its failure is the caller's.
   */
  async whileLeading(start: () => Promise<Led>, failed: (error: unknown) => void): Promise<Led> {
    const work = new LedWork(() => this.#leads, start, failed);
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
}

/** Begins and ends one after the other, however quickly the leadership changes. */
class LedWork {
  #led: Led | undefined;
  #turn: Promise<void> = Promise.resolve();
  #isOver = false;

  constructor(
    private readonly leads: () => boolean,
    private readonly start: () => Promise<Led>,
    private readonly failed: (error: unknown) => void,
  ) {}

  async first(): Promise<void> {
    if (this.leads()) this.#led = await this.start();
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
    const isWanted = this.leads() && !this.#isOver;
    if (isWanted && !this.#led) this.#led = await this.start();
    else if (!isWanted && this.#led) {
      const led = this.#led;
      this.#led = undefined;
      await led.close();
    }
  }
}
