// Tells when everything that waited at a server start has been hunted once; until then nothing expires (purgatory.md).

export class FirstRound {
  readonly #attempted: Map<string, boolean>;

  constructor(keys: Iterable<string>) {
    this.#attempted = new Map([...keys].map((key) => [key, false]));
  }

  get isOver(): boolean {
    return this.#attempted.size === 0;
  }

  attempted(key: string): void {
    if (this.#attempted.has(key)) this.#attempted.set(key, true);
  }

  /** `isQuiet`: no attempt, no fetch and no domain queue has it any more. */
  settle(key: string, lacksAnything: boolean, isQuiet: boolean): void {
    if (!lacksAnything || (isQuiet && this.#attempted.get(key))) this.#attempted.delete(key);
  }
}
