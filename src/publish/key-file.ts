// The key a person publishes with: read from a file, or made once and kept there (mode 0600). A file that is there is
// never written.

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { secretKeyHex } from "../config/value-kinds.js";
import { type RandomBytes, SecretKey } from "../nostr/keys.js";
import { nsecOf } from "../nostr/nip19.js";

export type OwnKey =
  | { readonly ok: true; readonly key: SecretKey; readonly isNew: boolean; readonly othersMayRead: boolean }
  | { readonly ok: false; readonly message: string };

/** Throws what the system throws when the file cannot be read or made. */
export function keyIn(file: string, random: RandomBytes): OwnKey {
  const isNew = made(file, random);
  const secretHex = secretKeyHex(readFileSync(file, "utf8").trim());
  const key = secretHex === undefined ? undefined : SecretKey.fromHex(secretHex);
  // The content may be a key with a typing error: it is not shown.
  if (!key) return { ok: false, message: `${file} holds no nsec and no 64 hex digits: name another file with --key` };
  return { ok: true, key, isNew, othersMayRead: (statSync(file).mode & 0o077) !== 0 };
}

function made(file: string, random: RandomBytes): boolean {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  let descriptor: number;
  try {
    descriptor = openSync(file, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    writeSync(descriptor, `${nsecOf(SecretKey.generate(random))}\n`);
    fsyncSync(descriptor);
  } catch (error) {
    // Half a key on a full disk would stand in the way of the next try.
    rmSync(file, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
  return true;
}
