// Names of things as strangers write them, checked once and then carried by type: hexadecimal ids, keys and object ids,
// and full names of git refs.

import type { Brand } from "../base/brand.js";

export type EventId = Brand<string, "EventId">;
export type Pubkey = Brand<string, "Pubkey">;
/** A git object id: 40 (SHA-1) or 64 (SHA-256) lower-case hex digits. Nothing else may ever reach git. */
export type Oid = Brand<string, "Oid">;

const hex64 = /^[0-9a-f]{64}$/;
const hex128 = /^[0-9a-f]{128}$/;
const oidPattern = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/;

export const isEventId = (text: unknown): text is EventId => typeof text === "string" && hex64.test(text);
export const isPubkey = (text: unknown): text is Pubkey => typeof text === "string" && hex64.test(text);
export const isSignature = (text: unknown): text is string => typeof text === "string" && hex128.test(text);
export const isOid = (text: unknown): text is Oid => typeof text === "string" && oidPattern.test(text);

/** A full ref name (`refs/…`) that git itself would accept. */
export type RefName = Brand<string, "RefName">;

export const maxRefNameBytes = 255;

// Control bytes, space, ~ ^ : ? * [ \ and DEL are never allowed in a ref name.
const forbiddenCharacters = /[\x00-\x20\x7f~^:?*[\\]/;

/**
 * A full ref name as `git check-ref-format` allows it, of at most 255 bytes. Which namespaces a push or a state may use is
 * decided elsewhere (spec/git-http.md).
 */
export function isRefName(name: string): name is RefName {
  if (!name.startsWith("refs/") || Buffer.byteLength(name) > maxRefNameBytes) return false;
  if (forbiddenCharacters.test(name) || name.includes("..") || name.includes("@{") || !name.isWellFormed())
    return false;
  if (name.endsWith(".")) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}
