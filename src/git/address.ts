// Where a repository is: its name in events, its URL's path, its directory. RepositoryAddress is the only value from
// which a path on disk is made (git-http.md, "Repositories on disk"; threats.md row 3). Knows nothing about whether the repository exists or may be served.
//
// A directory name is the identifier itself when that is safe on every file system, otherwise a reversible encoding
// whose first character no verbatim name can have, so that two identifiers never share a directory:
//   up to 120 bytes   `=` and the UTF-8 bytes in lower-case hex
//   longer            `=sha256-` and the hash; the identifier itself is in the repository's `holdfast-identifier`
// Every repository records its identifier there. On a file system that folds case, `Repo` and `repo` would be one
// directory: `create` compares the record and refuses the second instead of mixing them.

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Brand } from "../base/brand.js";
import { type RepositoryArea, type RepositoryName, repositoryKey } from "../catalogue/repositories.js";
import type { Pubkey } from "../nostr/event.js";
import { npubOf } from "../nostr/nip19.js";

/** Text of the shape of an npub (its checksum is for the caller, who decodes it to a key). Safe as a directory name. */
export type Npub = Brand<string, "Npub">;

const npubPattern = /^npub1[02-9ac-hj-np-z]{58}$/;

export const asNpub = (text: string): Npub | undefined => (npubPattern.test(text) ? (text as Npub) : undefined);

const verbatimPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const hexEncodedMaxBytes = 120;
/** Of the parts of a name in a pack store (packs/port.ts). */
const maxStoredPart = 200;

function directoryName(identifier: string): string {
  if (verbatimPattern.test(identifier) && !/(?:\.git|\.lock|\.)$/i.test(identifier)) return identifier;
  const bytes = Buffer.from(identifier, "utf8");
  if (bytes.length <= hexEncodedMaxBytes) return `=${bytes.toString("hex")}`;
  return hashedName(identifier);
}

const hashedName = (identifier: string): string =>
  `=sha256-${createHash("sha256").update(identifier, "utf8").digest("hex")}`;

export class RepositoryAddress {
  private constructor(
    readonly area: RepositoryArea,
    readonly owner: Pubkey,
    readonly npub: Npub,
    readonly identifier: string,
  ) {}

  /** `npub` must be the owner's; the caller has decoded one from the other. Lone surrogates have no UTF-8: no address. */
  static of(owner: Pubkey, npub: Npub, identifier: string, area: RepositoryArea = "main"): RepositoryAddress {
    if (!identifier.isWellFormed()) throw new RangeError("a repository identifier must be well-formed text");
    return new RepositoryAddress(area, owner, npub, identifier);
  }

  /** Equal for equal repositories; also the order in which locks of several repositories are taken. */
  get key(): string {
    return repositoryKey(this);
  }

  /** As people write it, for logs and metrics. */
  get label(): string {
    return `${this.area === "prs" ? "prs/" : ""}${this.npub}/${this.identifier}`;
  }

  /** Where its files are in a pack store. */
  get storeFolder(): string {
    const name = directoryName(this.identifier);
    return `${this.area}/${this.owner}/${name.length <= maxStoredPart ? name : hashedName(this.identifier)}`;
  }

  directoryUnder(gitDataPath: string): string {
    const name = `${directoryName(this.identifier)}.git`;
    return this.area === "main" ? join(gitDataPath, this.npub, name) : join(gitDataPath, "prs", this.owner, name);
  }
}

export interface GitPath {
  readonly area: RepositoryArea;
  readonly npub: Npub;
  readonly identifier: string;
  /** What follows the repository: "" for its page, "info/refs", "git-upload-pack", … */
  readonly rest: string;
}

const maxIdentifierBytes = 4_096;

/**
 * Takes a URL's path apart: `/<npub>/<identifier>.git[/…]`, optionally below `/prs` (threats.md row 5). Each segment is
 * percent-decoded exactly once, after splitting, so that an encoded slash stays part of the identifier.
 *
 * `pathname` as it stands in the request line, without a base path and the query. Undefined when it is not a repository's URL.
 */
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
  const end = segments.findLastIndex((segment) => segment !== "") + 1;
  return { area, npub, identifier, rest: segments.slice(2, end).join("/") };
}

/** The same where `.git` was forgotten: the pages lead such a request to the repository. */
export function meantGitPath(pathname: string): GitPath | undefined {
  const [before = "", owner = "", name = "", ...rest] = pathname.split("/");
  return parseGitPath(pathname) ?? parseGitPath([before, owner, `${name}.git`, ...rest].join("/"));
}

function decodeOnce(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

export function diskAddress(name: RepositoryName): RepositoryAddress {
  const npub = asNpub(npubOf(name.owner));
  if (!npub) throw new Error("a public key has no npub");
  return RepositoryAddress.of(name.owner, npub, name.identifier, name.area);
}
