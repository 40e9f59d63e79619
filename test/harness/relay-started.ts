// The whole server in this process, as `serve` would start it, but with a policy that takes everything and on LMDB:
// what a client of the relay sees of the real thing.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import type { AdmissionPolicy } from "../../src/admission/verdict.js";
import { systemClock } from "../../src/base/clock.js";
import { startServer } from "../../src/server.js";
import { freePort } from "./free-port.js";
import { liveConfigOf } from "./live-config.js";
import { acceptAll } from "./relay-server.js";

export interface StartedServer {
  readonly url: string;
  readonly httpUrl: string;
  readonly port: number;
  readonly folder: string;
  readonly faults: unknown[];
  close(): Promise<void>;
}

export interface StartedWish {
  readonly settings?: Readonly<Record<string, string>>;
  /** Kept when the server closes; a new one, removed at the end, otherwise. */
  readonly folder?: string;
  /** undefined: GRASP's own rules. */
  readonly policy?: AdmissionPolicy | undefined;
}

export async function startWholeServer(wish: StartedWish = {}): Promise<StartedServer> {
  const port = await freePort();
  const folder = wish.folder ?? mkdtempSync(join(tmpdir(), "holdfast-started-"));
  const live = liveConfigOf({
    NGIT_DATA_PATH: folder,
    NGIT_DOMAIN: `127.0.0.1:${port}`,
    NGIT_BIND_ADDRESS: `127.0.0.1:${port}`,
    ...wish.settings,
  });
  const faults: unknown[] = [];
  const policy = "policy" in wish ? wish.policy : acceptAll;
  const server = await startServer({
    live,
    logger: pino({ level: "silent" }),
    clock: systemClock,
    build: { version: "0.0.0", commit: "test" },
    cores: 2,
    onFault: (error) => faults.push(error),
    onRequestFault: (error) => faults.push(error),
    ...(policy !== undefined && { policy }),
  });
  return {
    url: `ws://127.0.0.1:${port}/`,
    httpUrl: `http://127.0.0.1:${port}`,
    port,
    folder,
    faults,
    async close() {
      await server.close();
      if (wish.folder === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
