// What the machines of a cluster showed of one ref, while it was pushed to. Each machine's values only go forward along the
// pushes: a value that comes back, or one that nobody pushed, means that the ref moved twice or that an answer was taken back.

/** A reading that is under way: what it shows must be at least what was known when it began. */
export type Reading = (tip: string) => void;

export class RefLedger {
  readonly #order = new Map<string, number>();
  readonly #reached = new Map<string, number>();
  readonly #violations: string[] = [];

  constructor(readonly name: string) {}

  /** A value that is pushed next, whatever will be answered. */
  made(tip: string): void {
    this.#order.set(tip, this.#order.size);
  }

  /** A machine acknowledged a push. */
  acknowledged(machine: string, tip: string): void {
    this.#reach(machine, this.#order.get(tip) ?? -1);
  }

  /** Called before a machine is asked. `none`: it answered that there is no such ref. `what` was read, for people. */
  reading(machine: string, what: string): Reading {
    const least = this.#reached.get(machine) ?? -1;
    return (tip) => {
      const at = tip === "none" ? -1 : this.#order.get(tip);
      if (at === undefined) {
        this.#violations.push(`${this.name}: ${machine} shows ${tip} in its ${what}, which nobody pushed`);
        return;
      }
      if (at < least) {
        const known = [...this.#order.keys()][least];
        this.#violations.push(`${this.name}: ${machine} went back from ${known} to ${tip} in its ${what}`);
      }
      this.#reach(machine, at);
    };
  }

  /** What was found since the last call. */
  takeViolations(): string[] {
    return this.#violations.splice(0);
  }

  #reach(machine: string, at: number): void {
    this.#reached.set(machine, Math.max(this.#reached.get(machine) ?? -1, at));
  }
}
