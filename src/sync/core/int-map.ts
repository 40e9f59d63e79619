// A map from small whole numbers to 32-bit words in two flat arrays. Two and a half million (relay, item) pairs fit
// into some 40 MiB; as entries of a Map they would take several times that.

export class IntMap {
  /** key + 1; 0 is an empty place. */
  #keys: Uint32Array;
  #values: Uint32Array;
  #mask: number;
  size = 0;

  constructor() {
    this.#keys = new Uint32Array(8);
    this.#values = new Uint32Array(8);
    this.#mask = 7;
  }

  #place(key: number): number {
    let at = (Math.imul(key, 0x9e3779b1) >>> 7) & this.#mask;
    for (;;) {
      const found = this.#keys[at]!;
      if (found === 0 || found === key + 1) return at;
      at = (at + 1) & this.#mask;
    }
  }

  has(key: number): boolean {
    return this.#keys[this.#place(key)] !== 0;
  }

  /** The value, or -1. */
  get(key: number): number {
    const at = this.#place(key);
    return this.#keys[at] === 0 ? -1 : this.#values[at]!;
  }

  set(key: number, value: number): void {
    let at = this.#place(key);
    if (this.#keys[at] === 0) {
      if ((this.size + 1) * 4 > this.#keys.length * 3) {
        this.#resize(this.#keys.length * 2);
        at = this.#place(key);
      }
      this.#keys[at] = key + 1;
      this.size += 1;
    }
    this.#values[at] = value;
  }

  delete(key: number): boolean {
    let hole = this.#place(key);
    if (this.#keys[hole] === 0) return false;
    // Later entries of the same run move up, so that look-ups never meet a false end.
    let at = hole;
    for (;;) {
      at = (at + 1) & this.#mask;
      const moved = this.#keys[at]!;
      if (moved === 0) break;
      const home = (Math.imul(moved - 1, 0x9e3779b1) >>> 7) & this.#mask;
      const distanceFromHome = (at - home) & this.#mask;
      const distanceFromHole = (at - hole) & this.#mask;
      if (distanceFromHome >= distanceFromHole) {
        this.#keys[hole] = moved;
        this.#values[hole] = this.#values[at]!;
        hole = at;
      }
    }
    this.#keys[hole] = 0;
    this.size -= 1;
    if (this.#keys.length > 64 && this.size * 8 < this.#keys.length) this.#resize(this.#keys.length / 4);
    return true;
  }

  /** All keys now in the map; safe to change the map while walking them. */
  keys(): Uint32Array {
    const keys = new Uint32Array(this.size);
    let next = 0;
    for (const key of this.#keys) if (key !== 0) keys[next++] = key - 1;
    return keys;
  }

  clear(): void {
    this.#keys = new Uint32Array(8);
    this.#values = new Uint32Array(8);
    this.#mask = 7;
    this.size = 0;
  }

  #resize(length: number): void {
    const keys = this.#keys;
    const values = this.#values;
    this.#keys = new Uint32Array(length);
    this.#values = new Uint32Array(length);
    this.#mask = length - 1;
    for (let from = 0; from < keys.length; from++) {
      const key = keys[from]!;
      if (key === 0) continue;
      const at = this.#place(key - 1);
      this.#keys[at] = key;
      this.#values[at] = values[from]!;
    }
  }
}
