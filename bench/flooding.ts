// Clients that ask for much, again and again, in a thread of their own: whoever measures beside them must not wait for
// their megabytes in the same event loop.

import { parentPort, workerData } from "node:worker_threads";
import { Asker } from "./asker.js";

export interface Flood {
  readonly port: number;
  readonly clients: number;
  readonly filter: string;
}

const { port, clients, filter } = workerData as Flood;
const askers = await Promise.all(Array.from({ length: clients }, () => Asker.connect(port)));
parentPort?.postMessage("flooding");
await Promise.all(
  askers.map(async (asker) => {
    for (;;) await asker.ask(filter);
  }),
);
