// What waits for its turn inside the server. Every queue is bounded; these show how near to its bound one is.

import { Gauge, type Registry } from "prom-client";

export function measureQueues(registry: Registry, lengths: Readonly<Record<string, () => number>>): void {
  new Gauge({
    name: "ngit_queue_length",
    help: "Works that wait for their turn, by queue",
    labelNames: ["queue"],
    registers: [registry],
    collect() {
      for (const [queue, length] of Object.entries(lengths)) this.set({ queue }, length());
    },
  });
}
