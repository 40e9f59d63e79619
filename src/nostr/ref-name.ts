// Names of git refs as `git check-ref-format` allows them, narrowed to full names of at most 255 bytes. Which
// namespaces a push or a state may use is decided elsewhere (spec/git-http.md).

import type { Brand } from "../base/brand.js";

/** A full ref name (`refs/…`) that git itself would accept. */
export type RefName = Brand<string, "RefName">;

export const maxRefNameBytes = 255;

// Control bytes, space, ~ ^ : ? * [ \ and DEL are never allowed in a ref name.
const forbiddenCharacters = /[\x00-\x20\x7f~^:?*[\\]/;

export function isRefName(name: string): name is RefName {
  if (!name.startsWith("refs/") || Buffer.byteLength(name) > maxRefNameBytes) return false;
  if (forbiddenCharacters.test(name) || name.includes("..") || name.includes("@{") || !name.isWellFormed())
    return false;
  if (name.endsWith(".")) return false;
  return name.split("/").every((part) => part !== "" && !part.startsWith(".") && !part.endsWith(".lock"));
}
