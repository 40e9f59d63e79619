// What keeps a server from starting and its operator can mend, in words that say how; and the data directory made ours:
// locked against a second server, closed to other users of the machine.

import { chmodSync } from "node:fs";
import { isPrivateData, markPrivateData } from "./access/private-data.js";
import { lockDataDirectory } from "./base/data-lock.js";
import { systemErrorSentence, thisMachine } from "./base/system-error.js";
import type { Config } from "./config/config.js";
import { problemText } from "./config/config.js";
import type { Logger } from "./config/logging.js";
import { loadServerKey } from "./config/server-key.js";
import { GitTooOldError } from "./git/run.js";
import { type ServiceName, serviceNames } from "./net/url.js";
import { SecretKey } from "./nostr/keys.js";
import { StoreRefusal } from "./store/lmdb/upgrade.js";
import type { Store } from "./store/port.js";

/** The server cannot start for a reason its operator can mend. */
export class StartRefusal extends Error {
  override readonly name = "StartRefusal";
}

/** The data directory is ours until the returned function is called. */
export function lockedData(config: Config): () => void {
  const lock = lockDataDirectory(config.relayDataPath);
  if (lock.ok) return () => lock.release();
  throw new StartRefusal(
    `the data directory ${config.relayDataPath} is in use by process ${lock.holderPid}: stop it, or set NGIT_DATA_PATH to another directory`,
  );
}

/** Nobody else on the machine reads what the server keeps (threats row 55): directories that were open are closed. */
export function closeFolders(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      chmodSync(folder, 0o700);
    } catch (error) {
      // The server does not close a volume that belongs to another user.
      if (!["EPERM", "EROFS", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }
}

/**
 * What a private service kept is never shown to everybody by a forgotten setting (GRASP-08): the store remembers, and only the
 * operator's word opens it.
 */
export async function keepPrivate(store: Store, isPrivate: boolean, mayOpen: boolean, logger: Logger): Promise<void> {
  const wasPrivate = await isPrivateData(store);
  if (wasPrivate === isPrivate) return;
  if (wasPrivate && !mayOpen) {
    throw new StartRefusal(
      "this data belongs to a private service, and NGIT_PRIVATE_MODE is not true: set it, or start once with --open-private-data to show everything in it to everybody",
    );
  }
  await store.transact(async (tx) => markPrivateData(tx, isPrivate));
  if (wasPrivate) logger.warn("the data of a private service is public from now on, as --open-private-data says");
}

/** The server's key, made at the first start, and the name it goes by. */
export function identityOf(config: Config): { readonly secret: SecretKey; readonly services: readonly ServiceName[] } {
  const key = loadServerKey(config);
  if (!key.ok) throw new StartRefusal(problemText(key.problem));
  const secret = SecretKey.fromHex(key.secretHex);
  if (!secret) throw new StartRefusal("NGIT_RELAY_OWNER_NSEC is not a secret key: remove it to have one made");
  const services = serviceNames(config);
  if (services.length === 0) throw new StartRefusal(`NGIT_DOMAIN ${config.domain} is not host[:port][/base]`);
  return { secret, services };
}

/** What went wrong at start, as a refusal where the operator can do something about it. */
export function startFailure(error: unknown): unknown {
  if (error instanceof GitTooOldError || error instanceof StoreRefusal) return new StartRefusal(error.message);
  const sentence = systemErrorSentence(error, thisMachine(["serve"]));
  return sentence === undefined ? error : new StartRefusal(sentence);
}
