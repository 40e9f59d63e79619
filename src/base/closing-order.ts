// What was opened is closed in reverse, each once, whatever else fails. Until then it keeps the process alive: clocks
// do not (their timers are unreferenced), and a process that ends while something closes has not closed it.

export class ClosingOrder {
  readonly #steps: { readonly name: string; readonly close: () => Promise<void> }[] = [];
  #closed: Promise<void> | undefined;
  #current: string | undefined;
  readonly #alive = setInterval(() => undefined, 2 ** 30);

  constructor(private readonly logger: { error(fields: object, text: string): void }) {}

  add(name: string, close: () => Promise<void>): void {
    this.#steps.push({ name, close });
  }

  /** What is still opening is closed as soon as it has opened; a failure to open reaches whoever awaits the answer. */
  addOpening<Room extends { close(): Promise<void> }>(name: string, opening: Promise<Room>): Promise<Room> {
    const opened = opening.catch(() => undefined);
    this.add(name, async () => (await opened)?.close());
    return opening;
  }

  /** What is being closed now: whoever gives up waiting can say what for. */
  get current(): string | undefined {
    return this.#current;
  }

  /** Never throws: what would not close is logged. */
  close(): Promise<void> {
    this.#closed ??= this.#closeAll();
    return this.#closed;
  }

  async #closeAll(): Promise<void> {
    for (const { name, close } of this.#steps.reverse()) {
      this.#current = name;
      try {
        await close();
      } catch (error) {
        this.logger.error({ err: error, part: name }, "closing failed");
      }
    }
    this.#current = undefined;
    clearInterval(this.#alive);
  }
}
