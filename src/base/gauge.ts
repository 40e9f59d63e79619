// A gauge that is read when somebody asks for the metrics, and costs nothing between.

import { Gauge, type Registry } from "prom-client";

export function gaugeOf(registry: Registry, name: string, help: string, read: () => number): void {
  new Gauge({
    name,
    help,
    registers: [registry],
    collect() {
      this.set(read());
    },
  });
}
