// Faults that pass by themselves or with a little room: a full disk, a busy or closing store, a git process or its
// launcher that was killed, a pack store that cannot be reached, a plan that others overtook too often, threads that died while
// they checked signatures, no descriptor left. What met one is refused or done again later; the server goes on. Everything
// else nobody expected, and it ends the process (run-until-signal.ts).

import type { Logger } from "./config/logging.js";
import { Overtaken } from "./git/change-refs.js";
import { LauncherError } from "./git/launcher.js";
import { GitError, ObjectsUnavailableError } from "./git/run.js";
import { VerifierDiedError } from "./nostr/verify/pool.js";
import { SharedLogError, StoreBusyError, StoreClosedError, StoreFullError } from "./store/port.js";

const passingCodes: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "EMFILE", "ENFILE"]);

export function isPassing(error: unknown): boolean {
  const isKnown =
    error instanceof StoreFullError ||
    error instanceof StoreBusyError ||
    error instanceof StoreClosedError ||
    error instanceof SharedLogError ||
    error instanceof LauncherError ||
    error instanceof GitError ||
    error instanceof ObjectsUnavailableError ||
    error instanceof Overtaken ||
    error instanceof VerifierDiedError ||
    // By name: a server that is alone does not load what machines share.
    (error instanceof Error && error.name === "PackStoreError");
  return isKnown || (error instanceof Error && "code" in error && passingCodes.has(error.code));
}

/** Only what does not pass reaches `onFault`. */
export const survivable =
  (logger: Pick<Logger, "warn">, onFault: (error: unknown) => void) =>
  (error: unknown): void => {
    if (isPassing(error)) logger.warn({ err: error }, "a fault that passes; the server goes on");
    else onFault(error);
  };
