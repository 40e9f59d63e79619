// Where a repository is: the only value from which a path on disk is made (git-http.md, "Repositories on disk";
// threats.md row 3). Knows nothing about whether the repository exists or may be served.
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
import type { Pubkey } from "../nostr/ids.js";

/** Text of the shape of an npub (its checksum is for the caller, who decodes it to a key). Safe as a directory name. */
export type Npub = Brand<string, "Npub">;

const npubPattern = /^npub1[02-9ac-hj-np-z]{58}$/;

export const asNpub = (text: string): Npub | undefined => (npubPattern.test(text) ? (text as Npub) : undefined);

/** `main`: `/<npub>/<identifier>.git`. `prs`: `/prs/<npub>/<identifier>.git` (GRASP-06). */
export type RepositoryArea = "main" | "prs";

const verbatimPattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
const hexEncodedMaxBytes = 120;

function directoryName(identifier: string): string {
  if (verbatimPattern.test(identifier) && !/(?:\.git|\.lock|\.)$/i.test(identifier)) return identifier;
  const bytes = Buffer.from(identifier, "utf8");
  if (bytes.length <= hexEncodedMaxBytes) return `=${bytes.toString("hex")}`;
  return `=sha256-${createHash("sha256").update(bytes).digest("hex")}`;
}

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
    return `${this.area}:${this.owner}:${this.identifier}`;
  }

  /** As people write it, for logs and metrics. */
  get label(): string {
    return `${this.area === "prs" ? "prs/" : ""}${this.npub}/${this.identifier}`;
  }

  directoryUnder(gitDataPath: string): string {
    const name = `${directoryName(this.identifier)}.git`;
    return this.area === "main" ? join(gitDataPath, this.npub, name) : join(gitDataPath, "prs", this.owner, name);
  }
}
