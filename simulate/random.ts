// One seed, one run: every choice of a simulation is drawn from here.

export class Chance {
  #a: number;
  #b: number;
  #c: number;
  #d = 1;

  constructor(seed: number) {
    this.#a = seed >>> 0;
    this.#b = (seed / 2 ** 32) >>> 0;
    this.#c = 0x9e3779b9;
    for (let round = 0; round < 12; round++) this.word();
  }

  /** sfc32: small, fast, long enough a period. */
  word(): number {
    const t = (this.#a + this.#b + this.#d) | 0;
    this.#d = (this.#d + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (this.#c << 21) | (this.#c >>> 11);
    this.#c = (this.#c + t) | 0;
    return t >>> 0;
  }

  readonly next = (): number => this.word() / 2 ** 32;

  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  once(probability: number): boolean {
    return this.next() < probability;
  }

  of<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)]!;
  }

  some<T>(list: readonly T[], count: number): T[] {
    const left = [...list];
    const taken: T[] = [];
    while (taken.length < count && left.length > 0)
      taken.push(...left.splice(Math.floor(this.next() * left.length), 1));
    return taken;
  }

  hex(words: number): string {
    let text = "";
    for (let n = 0; n < words; n++) text += this.word().toString(16).padStart(8, "0");
    return text;
  }

  /** Small numbers often, large ones seldom: rank of a popular thing among `count`. */
  zipf(count: number): number {
    return Math.min(count - 1, Math.floor(count ** this.next() - 1));
  }
}
