// Keeps a PostgreSQL for a benchmark: it goes with its folder when the benchmark ends, however that ends.

import { TestPostgres } from "../test/cluster/postgres.js";

export interface PostgresFacts {
  readonly url: string;
  readonly pid: number;
}

const started = TestPostgres.start();
let isEnding = false;
const end = (): void => {
  if (isEnding) return;
  isEnding = true;
  void started.then((postgres) => postgres.dispose()).finally(() => process.exit(0));
};
// A terminal tells all programs at once; the benchmark tells this one.
process.on("SIGINT", () => undefined);
process.on("SIGHUP", () => undefined);
process.on("SIGTERM", end);
process.on("disconnect", end);
const postgres = await started;
const facts: PostgresFacts = { url: postgres.url(), pid: postgres.pid ?? 0 };
process.send?.(facts);
