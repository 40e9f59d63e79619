// What a process that makes traffic writes down, and the pace at which it works.

import { percentile } from "./rows.js";
import type { Measured } from "./traffic.js";

export class Ledger {
  readonly #took = new Map<string, number[]>();
  readonly #failures = new Map<string, number>();
  readonly acknowledged: string[] = [];
  readonly refs: Record<string, string> = {};
  closed = 0;
  isOver = false;

  took(operation: string, ms: number): void {
    const values = this.#took.get(operation) ?? [];
    values.push(ms);
    this.#took.set(operation, values);
  }

  failed(operation: string, why: string): void {
    const before = this.#failures.get(operation) ?? 0;
    this.#failures.set(operation, before + 1);
    if (before < 3) process.stderr.write(`  ${operation}: ${why.trim().slice(0, 300)}\n`);
  }

  measured(): Measured[] {
    const operations = new Set([...this.#took.keys(), ...this.#failures.keys()]);
    return [...operations].map((operation) => {
      const values = this.#took.get(operation) ?? [];
      return {
        operation,
        count: values.length,
        failures: this.#failures.get(operation) ?? 0,
        p50Ms: percentile(values, 0.5),
        p99Ms: percentile(values, 0.99),
      };
    });
  }
}

/** Calls `work` at an even rate until it is over; waits for those under way. Late ones are made up for: open loop. */
export async function atRate(perSecond: number, ledger: Ledger, work: () => Promise<void>): Promise<void> {
  const began = performance.now();
  const underWay = new Set<Promise<void>>();
  let started = 0;
  while (!ledger.isOver) {
    const due = Math.floor(((performance.now() - began) / 1_000) * perSecond);
    for (; started < due; started++) {
      const one = work().finally(() => underWay.delete(one));
      underWay.add(one);
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(20, 500 / perSecond)));
  }
  await Promise.all(underWay);
}
