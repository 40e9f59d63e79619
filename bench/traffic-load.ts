// One process that makes traffic, as its parent orders it: says "ready" when everything is connected, begins at "go",
// stops by itself, and tells what it measured and what was acknowledged.

import "./ends-with-parent.js";
import { Ledger } from "./ledger.js";
import type { TrafficOrder, TrafficResult } from "./traffic.js";
import { cloneTraffic, pushTraffic } from "./traffic-git.js";
import { eventTraffic, liveTraffic, negentropyTraffic, requestTraffic } from "./traffic-relay.js";

const message = <T>(): Promise<T> => new Promise((resolve) => process.once("message", (value) => resolve(value as T)));

const order = await message<TrafficOrder>();
const ledger = new Ledger();
const runs: (() => Promise<void>)[] = [];
for (const traffic of order.traffic) {
  if (traffic.role === "events") runs.push(await eventTraffic(order, traffic, ledger));
  else if (traffic.role === "requests") runs.push(await requestTraffic(order, traffic, ledger));
  else if (traffic.role === "live") runs.push(await liveTraffic(order, traffic, ledger));
  else if (traffic.role === "negentropy") runs.push(await negentropyTraffic(order, traffic, ledger));
  else if (traffic.role === "pushes") runs.push(await pushTraffic(order, traffic, ledger));
  else runs.push(await cloneTraffic(order, traffic, ledger));
}
const go = message<string>();
process.send?.("ready");
await go;
setTimeout(() => {
  ledger.isOver = true;
}, order.seconds * 1_000);
await Promise.all(runs.map((run) => run()));
const result: TrafficResult = {
  measured: ledger.measured(),
  acknowledged: ledger.acknowledged,
  refs: ledger.refs,
  closed: ledger.closed,
};
process.send?.(result, () => process.exit(0));
