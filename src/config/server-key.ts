// The server's secret key: systemd's credential, configured, read from a file, or made once and kept in the data directory
// (mode 0600), in this order. One that is there and is no key stops the start: another would be another server. With the
// memory backend it is made anew at each start and nothing is written.

import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import type { Config, Problem } from "./config.js";
import { secretKeyHex } from "./value-kinds.js";

export const serverKeyFile = "server.key";

type ServerKey =
  | { readonly ok: true; readonly secretHex: string; readonly madeNow: boolean }
  | { readonly ok: false; readonly problem: Problem };

export function loadServerKey(config: Config): ServerKey {
  const credential = config.serverKeyCredential;
  if (credential !== undefined && existsSync(credential)) return readKey(credential);
  const source = config.relayOwnerNsec;
  if (source?.type === "key") return { ok: true, secretHex: source.secretHex, madeNow: false };
  if (source?.type === "file") return readKey(source.path);
  if (config.databaseBackend === "memory") return { ok: true, secretHex: newSecret(), madeNow: true };
  const path = join(config.relayDataPath, serverKeyFile);
  const made = makeKeyFile(config.relayDataPath, path);
  const read = readKey(path);
  return read.ok ? { ...read, madeNow: made } : read;
}

function readKey(path: string): ServerKey {
  const fault = (message: string, fix: string): ServerKey => ({
    ok: false,
    problem: { key: "NGIT_RELAY_OWNER_NSEC", origin: "file", message, fix },
  });
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? "unreadable";
    return fault(
      `the key file ${JSON.stringify(path)} cannot be read (${reason})`,
      "Check the path and its permissions",
    );
  }
  const secretHex = secretKeyHex(text.trim());
  // The content may be a key with a typing error: it is not shown.
  if (secretHex === undefined) {
    return fault(
      `the key file ${JSON.stringify(path)} holds no nsec and no 64 hex digits`,
      "Write one of the two into it",
    );
  }
  return { ok: true, secretHex, madeNow: false };
}

/** True if this call made the file. A second server that starts at the same moment reads what the first one made. */
function makeKeyFile(directory: string, path: string): boolean {
  mkdirSync(directory, { recursive: true });
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  const file = openSync(draft, "wx", 0o600);
  try {
    writeSync(file, `${newSecret()}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** 32 random bytes are a valid key but for one case in 2^128; that case is drawn again. */
function newSecret(): string {
  for (;;) {
    const secret = randomBytes(32).toString("hex");
    if (!secret.startsWith("f".repeat(31)) && secret !== "0".repeat(64)) return secret;
  }
}
