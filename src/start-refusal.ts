// What keeps a server from starting and its operator can mend, in words that say how; and the data directory made ours:
// locked against a second server, closed to other users of the machine.

import { chmodSync } from "node:fs";
import { lockDataDirectory } from "./base/data-lock.js";
import type { Config } from "./config/config.js";
import { problemText } from "./config/config.js";
import { loadServerKey } from "./config/server-key.js";
import { GitTooOldError } from "./git/run.js";
import { type ServiceName, serviceName } from "./net/url.js";
import { SecretKey } from "./nostr/keys.js";

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

/** The server's key, made at the first start, and the name it goes by. */
export function identityOf(config: Config): { readonly secret: SecretKey; readonly service: ServiceName } {
  const key = loadServerKey(config);
  if (!key.ok) throw new StartRefusal(problemText(key.problem));
  const secret = SecretKey.fromHex(key.secretHex);
  if (!secret) throw new StartRefusal("NGIT_RELAY_OWNER_NSEC is not a secret key: remove it to have one made");
  const service = serviceName(config.domain);
  if (!service) throw new StartRefusal(`NGIT_DOMAIN ${config.domain} is not host[:port][/base]`);
  return { secret, service };
}

/** What went wrong at start, as a refusal where the operator can do something about it. */
export function startFailure(error: unknown, config: Config): unknown {
  if (error instanceof GitTooOldError) return new StartRefusal(error.message);
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (code === "EADDRINUSE" || code === "EACCES" || code === "EADDRNOTAVAIL") {
    const { host, port } = config.bindAddress;
    return new StartRefusal(
      `cannot use ${host} port ${port} or a file (${code}): choose another with NGIT_BIND_ADDRESS, or check permissions. ${String(error)}`,
    );
  }
  return error;
}
