// How many use a thing now, by the thing's key. Keeps nothing for keys that nobody uses.

export class UseCounts {
  readonly #counts = new Map<string, number>();

  has(key: string): boolean {
    return this.#counts.has(key);
  }

  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** One more uses it, until the returned function is called (once). */
  begin(key: string): () => void {
    this.#counts.set(key, this.of(key) + 1);
    return () => {
      const left = this.of(key) - 1;
      if (left > 0) this.#counts.set(key, left);
      else this.#counts.delete(key);
    };
  }
}
