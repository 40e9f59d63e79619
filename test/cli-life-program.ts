// A server process with the real life around the smallest rooms: what it does on signals and faults can be watched.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../src/base/clock.js";
import { loadConfig } from "../src/config/load.js";
import { runServer } from "../src/process-life.js";
import type { Rooms } from "../src/start.js";
import type { Store } from "../src/store/port.js";

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const load = () =>
  loadConfig({
    flags: {},
    environment: process.env,
    configPath: undefined,
    readFile: () => "",
    surroundings: { logIsTerminal: false, cores: 1 },
  });

const rooms: Rooms = {
  openStore: async () => {
    say("store opened");
    return {
      stats: { events: 0, bytesOnDisk: 0, queuedWorks: 0 },
      close: async () => say("store closed"),
    } as unknown as Store;
  },
  createVerifier: async () => ({
    engine: "none",
    verify: async () => undefined,
    close: async () => say("verifier closed"),
  }),
  createPolicy: () => async () => ({ ok: true, action: "store", rule: "all" }),
  observer: { received: () => undefined, decided: () => undefined },
  startService: async ({ live }) => {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(live.current.bindAddress.port, live.current.bindAddress.host, resolve);
    });
    process.on("SIGUSR2", () => {
      // As a bug would: a promise nobody waits for.
      void Promise.reject(new Error("planted fault"));
    });
    return {
      address: String((server.address() as AddressInfo).port),
      close: () =>
        new Promise<void>((resolve) => {
          server.close(() => {
            say("service closed");
            if (process.env.STALL !== "1") resolve();
          });
          if (process.env.STALL === "1") setInterval(() => undefined, 1000);
        }),
    };
  },
};

const loaded = load();
if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
process.exit(
  await runServer({ loaded, load, clock: systemClock, rooms, isHandledElsewhere: () => false, version: "0" }),
);
