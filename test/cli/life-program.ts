// A server process with the real life around the smallest rooms: what it does on signals and faults can be watched.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/base/clock.js";
import { ClosingOrder } from "../../src/base/closing-order.js";
import { loadConfig } from "../../src/config/load.js";
import { type LifeParts, runServer } from "../../src/run-until-signal.js";
import type { Server } from "../../src/server.js";

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const load = () =>
  loadConfig({
    flags: {},
    environment: process.env,
    configPath: undefined,
    readFile: () => "",
    surroundings: { logIsTerminal: false, cores: 1 },
  });

/** Of a machine whose copy of a cluster's data is of no use once: its second start fails. */
const isWorthless = process.env.WORTHLESS === "1";
let starts = 0;

async function start({ live, logger, beginAnew }: Parameters<LifeParts["start"]>[0]): Promise<Server> {
  starts += 1;
  if (isWorthless && starts === 1) setTimeout(() => beginAnew?.(new Error("another history")), 10);
  if (isWorthless && starts === 2) throw new Error("no snapshot yet");
  const closing = new ClosingOrder(logger);
  const { host, port } = live.current.bindAddress;
  say("store opened");
  closing.add("store", async () => say("store closed"));
  closing.add("verifier", async () => say("verifier closed"));
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  process.on("SIGUSR2", () => {
    // As a bug would: a promise nobody waits for.
    void Promise.reject(new Error("planted fault"));
  });
  closing.add(
    "service",
    () =>
      new Promise<void>((resolve) => {
        server.close(() => {
          say("service closed");
          if (process.env.STALL !== "1") resolve();
        });
        if (process.env.STALL === "1") setInterval(() => undefined, 1000);
      }),
  );
  const address = String((server.address() as AddressInfo).port);
  return { address, close: () => closing.close(), closing: () => closing.current };
}

const loaded = load();
if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
const quick = { ...systemClock, after: (ms: number, work: () => void) => systemClock.after(ms / 100, work) };
process.exit(await runServer({ loaded, load, clock: isWorthless ? quick : systemClock, start, version: "0" }));
