// Builds each room once, in this order, and closes them in reverse:
//   1. the data directory's lock   (not with the memory backend)
//   2. the server's key            made at the first start
//   3. the store
//   4. the verifier
//   5. the door for events         intake, with its policy
//   6. the service                 relay and HTTP server; from here on the port is open
// Rooms come as factories, so that what is built how is said in one place (main.ts) and tests can start a server too.

import type { AdmissionPolicy } from "./admission/policy.js";
import type { Clock } from "./base/clock.js";
import { lockDataDirectory } from "./cli/data-lock.js";
import type { Config } from "./config/config.js";
import type { LiveConfig } from "./config/live-config.js";
import type { Logger } from "./config/logging.js";
import { problemText } from "./config/problem.js";
import { loadServerKey } from "./config/server-key.js";
import { createIntake, type Intake, type IntakeObserver } from "./intake/intake.js";
import type { Verifier } from "./nostr/verify/port.js";
import type { Store } from "./store/port.js";

/** What the service is made from. */
export interface ServiceParts {
  readonly live: LiveConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly secretHex: string;
  readonly store: Store;
  readonly verifier: Verifier;
  readonly intake: Intake;
  /** A fault nobody expected: logged, then the process ends. */
  readonly onFault: (error: unknown) => void;
}

export interface Service {
  /** Where it listens, for the log. */
  readonly address: string;
  close(): Promise<void>;
}

export interface Rooms {
  openStore(config: Config, logger: Logger): Promise<Store>;
  createVerifier(config: Config): Promise<Verifier>;
  createPolicy(live: LiveConfig): AdmissionPolicy;
  readonly observer: IntakeObserver;
  /** Opens the port. */
  startService(parts: ServiceParts): Promise<Service>;
}

export interface Server {
  readonly address: string;
  /** Closes what was built, last first. Never throws: what would not close is logged. */
  close(): Promise<void>;
}

/** The server cannot start for a reason its operator can mend. */
export class StartRefusal extends Error {
  override readonly name = "StartRefusal";
}

export interface StartParts {
  readonly live: LiveConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly rooms: Rooms;
  readonly onFault: (error: unknown) => void;
}

export async function startServer({ live, logger, clock, rooms, onFault }: StartParts): Promise<Server> {
  const config = live.current;
  const closing = new ClosingOrder(logger);
  try {
    if (config.databaseBackend !== "memory") {
      const lock = lockDataDirectory(config.relayDataPath);
      if (!lock.ok) {
        throw new StartRefusal(
          `the data directory ${config.relayDataPath} is in use by process ${lock.holderPid}: stop it, or set NGIT_DATA_PATH to another directory`,
        );
      }
      closing.add("lock", async () => lock.release());
    }

    const key = loadServerKey(config);
    if (!key.ok) throw new StartRefusal(problemText(key.problem));

    const store = await rooms.openStore(config, logger);
    closing.add("store", () => store.close());

    const verifier = await rooms.createVerifier(config);
    closing.add("verifier", () => verifier.close());
    logger.info({ engine: verifier.engine, events: store.stats.events }, "store open");

    const intake = createIntake({
      store,
      verifier,
      policy: rooms.createPolicy(live),
      clock,
      observer: rooms.observer,
      maxFutureSeconds: config.maxFutureSecs,
    });

    const parts: ServiceParts = { live, logger, clock, secretHex: key.secretHex, store, verifier, intake, onFault };
    const service = await rooms.startService(parts);
    closing.add("service", () => service.close());
    return { address: service.address, close: () => closing.close() };
  } catch (error) {
    await closing.close();
    throw startFailure(error, config);
  }
}

function startFailure(error: unknown, config: Config): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === "EADDRINUSE" || code === "EACCES" || code === "EADDRNOTAVAIL") {
    const { host, port } = config.bindAddress;
    return new StartRefusal(
      `cannot use ${host} port ${port} or a file (${code}): choose another with NGIT_BIND_ADDRESS, or check permissions. ${String(error)}`,
    );
  }
  return error;
}

class ClosingOrder {
  readonly #steps: { readonly name: string; readonly close: () => Promise<void> }[] = [];
  #closed: Promise<void> | undefined;

  constructor(private readonly logger: Logger) {}

  add(name: string, close: () => Promise<void>): void {
    this.#steps.push({ name, close });
  }

  close(): Promise<void> {
    this.#closed ??= this.#closeAll();
    return this.#closed;
  }

  async #closeAll(): Promise<void> {
    for (const { name, close } of this.#steps.reverse()) {
      try {
        await close();
      } catch (error) {
        this.logger.error({ err: error, part: name }, "closing failed");
      }
    }
  }
}
