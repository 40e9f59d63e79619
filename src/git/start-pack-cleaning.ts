// Cleaning of the pack store in this server: its clock, metrics and log lines around git/pack-cleaning.ts.

import { repeatedly } from "../base/clock.js";
import { sharedAbort } from "../base/shared-abort.js";
import type { Context } from "../context.js";
import { type PackStore, PackStoreError } from "../packs/port.js";
import { cleanPackStore } from "./pack-cleaning.js";

const everyMs = 3_600_000;

export function startPackCleaning(
  { store, clock, logger, onFault }: Context,
  packs: PackStore,
): { close(): Promise<void> } {
  const stop = sharedAbort();
  const look = async (): Promise<void> => {
    try {
      const { files, bytes } = await cleanPackStore({ packs, store, clock }, stop.signal);
      if (files > 0) logger.info({ files, bytes }, "files that nothing names any more left the pack store");
    } catch (error) {
      if (stop.signal.aborted) return;
      if (!(error instanceof PackStoreError)) throw error;
      logger.warn({ err: error }, "the pack store could not be cleaned; it is tried again later");
    }
  };
  const cleaning = repeatedly(clock, () => everyMs, look, onFault);
  return {
    async close() {
      stop.abort();
      await cleaning.close();
    },
  };
}
