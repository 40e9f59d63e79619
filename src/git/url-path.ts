// `/<npub>/<identifier>.git[/…]`, optionally below `/prs`: a URL's path taken apart (git-http.md,
// "Repositories on disk"; threats.md rows 3 and 5). Each segment is percent-decoded exactly once, after splitting, so
// that an encoded slash stays part of the identifier. Says nothing about whether the repository exists.

import { withoutTrailing } from "../base/trailing.js";
import { asNpub, type Npub, type RepositoryArea } from "./address.js";

export interface GitPath {
  readonly area: RepositoryArea;
  readonly npub: Npub;
  readonly identifier: string;
  /** What follows the repository: "" for its page, "info/refs", "git-upload-pack", … */
  readonly rest: string;
}

const maxIdentifierBytes = 4_096;

/** `pathname` as it stands in the request line, without a base path and the query. Undefined when it is not a repository's URL. */
export function parseGitPath(pathname: string): GitPath | undefined {
  if (!pathname.startsWith("/")) return undefined;
  const segments = pathname.slice(1).split("/");
  const area: RepositoryArea = segments[0] === "prs" ? "prs" : "main";
  if (area === "prs") segments.shift();
  const npub = asNpub(decodeOnce(segments[0] ?? "") ?? "");
  const name = decodeOnce(segments[1] ?? "");
  if (!npub || !name?.endsWith(".git")) return undefined;
  const identifier = name.slice(0, -".git".length);
  // Signed names may hold control bytes; no client needs such a URL, and they end up in logs and headers.
  if (/[\x00-\x1f\x7f]/.test(identifier) || Buffer.byteLength(identifier) > maxIdentifierBytes) return undefined;
  return { area, npub, identifier, rest: withoutTrailing(segments.slice(2).join("/"), "/") };
}

function decodeOnce(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
