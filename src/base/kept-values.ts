// Values that cost work to make and never change, kept until others push them out: those that were asked for longest ago
// go first. Bounded by weight (bytes, mostly), because strangers choose what is asked for. When the process has grown too
// large, all of them go: each can be made again.

/** Weakly: who made one may forget it. */
const everywhere = new Set<WeakRef<KeptValues<unknown>>>();

export function forgetKeptValues(): void {
  for (const one of everywhere) {
    const values = one.deref();
    if (values) values.clear();
    else everywhere.delete(one);
  }
}

export class KeptValues<Value> {
  readonly #values = new Map<string, { readonly value: Value; readonly weight: number }>();
  #weight = 0;

  constructor(readonly maxWeight: number) {
    everywhere.add(new WeakRef(this));
  }

  get weight(): number {
    return this.#weight;
  }

  get(key: string): Value | undefined {
    const kept = this.#values.get(key);
    if (!kept) return undefined;
    // Re-inserted: the map's order is the order of use.
    this.#values.delete(key);
    this.#values.set(key, kept);
    return kept.value;
  }

  /** One that is heavier than an eighth of all is not kept: it would push out too many others. */
  set(key: string, value: Value, weight: number): void {
    this.delete(key);
    if (weight > this.maxWeight / 8) return;
    this.#values.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#values.keys()) {
      if (this.#weight <= this.maxWeight) break;
      this.delete(oldest);
    }
  }

  clear(): void {
    this.#values.clear();
    this.#weight = 0;
  }

  delete(key: string): void {
    const kept = this.#values.get(key);
    if (!kept) return;
    this.#values.delete(key);
    this.#weight -= kept.weight;
  }
}
