// Whether a store that is asked over the network answers at present. One request that heard nothing for long is enough to say
// no: whoever asks after it is refused at once, and a small question of its own finds out when the store answers again.
// Without this, requests that wait for each other (the pushes to one repository, the parts of one file) would each be silent
// for as long, one after the other.

const askForMs = 5_000;

export class Silence {
  #isSilent = false;
  #isClosed = false;

  /** `answers`: any answer is one, a refusal too. False only after the signal: it is asked again at once. */
  constructor(private readonly answers: (signal: AbortSignal) => Promise<boolean>) {}

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** A request was not answered. */
  noticed(): void {
    if (this.#isSilent || this.#isClosed) return;
    this.#isSilent = true;
    void this.#untilAnswered();
  }

  close(): void {
    this.#isClosed = true;
  }

  async #untilAnswered(): Promise<void> {
    while (!this.#isClosed && !(await this.answers(AbortSignal.timeout(askForMs))));
    this.#isSilent = false;
  }
}
