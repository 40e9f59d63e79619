// A server on a free port of this machine with its data in a given folder, for `holdfast bench`: settings of an
// operator's server, except for limits that one client alone would run into.

import { join } from "node:path";
import type { Clock } from "../base/clock.js";
import type { TemporaryServer } from "../bench/measure.js";
import { createLiveConfig, loadConfig } from "../config/load.js";
import { createLog } from "../config/logging.js";
import { startServer } from "../server.js";

const domain = "bench.example";

export async function startTemporary(folder: string, clock: Clock, cores: number): Promise<TemporaryServer> {
  const environment = {
    NGIT_BIND_ADDRESS: "127.0.0.1:0",
    NGIT_DOMAIN: domain,
    NGIT_DATA_PATH: join(folder, "data"),
    NGIT_EVENTS_PER_MINUTE_PER_CONNECTION: "1000000",
    NGIT_EVENTS_PER_MINUTE_PER_IP: "1000000",
    NGIT_RECEIVE_PER_SECOND_PER_IP_BYTES: "1GiB",
    NGIT_EVENTS_PER_DAY_PER_AUTHOR_BYTES: "1TiB",
    NGIT_EVENTS_PER_DAY_PER_REPOSITORY_BYTES: "1TiB",
    NGIT_EVENTS_PER_DAY_PER_IP_BYTES: "1TiB",
  };
  const surroundings = { logIsTerminal: false, cores };
  const load = () => loadConfig({ flags: {}, environment, configPath: undefined, readFile: () => "", surroundings });
  const loaded = load();
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  const server = await startServer({
    live: createLiveConfig(loaded, load),
    logger: createLog({ level: "fatal", format: "text" }).logger,
    clock,
    build: { version: "bench", commit: "bench" },
    cores,
    onFault(error) {
      throw error;
    },
  });
  return { address: server.address, domain, close: () => server.close() };
}
