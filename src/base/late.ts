/** Made when it is first asked for; later askers get the same. What failed is made anew for the next one. */
export class Late<T> {
  #answer: Promise<T> | undefined;
  readonly #make: () => Promise<T>;

  constructor(make: () => Promise<T>) {
    this.#make = make;
  }

  get(): Promise<T> {
    if (this.#answer) return this.#answer;
    const answer = this.#make();
    this.#answer = answer;
    answer.catch(() => {
      if (this.#answer === answer) this.#answer = undefined;
    });
    return answer;
  }

  /** Undefined while nobody asked. */
  get begun(): Promise<T> | undefined {
    return this.#answer;
  }
}
