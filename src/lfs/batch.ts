// The batch request of LFS as it is written (docs/api/batch.md of git-lfs), and what is decided about one file of it. Pure:
// facts in, an answer out.

import { sizeText } from "../base/text.js";
import { isLargeFileId, type LargeFileId, type LargeFileRow } from "../catalogue/large-files.js";

export interface WantedFile {
  readonly oid: LargeFileId;
  readonly size: number;
}

export interface BatchRequest {
  readonly operation: "upload" | "download";
  readonly files: readonly WantedFile[];
}

export interface BatchFault {
  readonly status: number;
  readonly message: string;
}

/** git-lfs asks for a hundred at a time. */
const maxFiles = 1_000;

const fault = (status: number, message: string): BatchFault => ({ status, message });

export function parseBatch(body: Buffer): BatchRequest | BatchFault {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return fault(400, "the batch request is no JSON");
  }
  const { operation, objects, transfers, hash_algo } = (value ?? {}) as Record<string, unknown>;
  if (operation !== "upload" && operation !== "download") return fault(400, "operation must be upload or download");
  if (hash_algo !== undefined && hash_algo !== "sha256")
    return fault(409, "only the hash algorithm sha256 is known here");
  if (transfers !== undefined && !(Array.isArray(transfers) && transfers.includes("basic"))) {
    return fault(422, "only the transfer adapter basic is served here");
  }
  if (!Array.isArray(objects) || objects.length > maxFiles) {
    return fault(
      objects === undefined || !Array.isArray(objects) ? 400 : 413,
      `objects must be a list of at most ${maxFiles}`,
    );
  }
  const files: WantedFile[] = [];
  for (const object of objects as unknown[]) {
    const { oid, size } = (object ?? {}) as Record<string, unknown>;
    if (!isLargeFileId(oid) || typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
      return fault(422, "each object needs an oid of 64 hex digits and a size in bytes");
    }
    files.push({ oid, size });
  }
  return { operation, files };
}

/** What is known of one file when somebody wants to bring it. */
export interface UploadFacts {
  readonly file: WantedFile;
  readonly row: LargeFileRow | undefined;
  /** Somebody brought it and nothing names it yet: what it really has. */
  readonly unclaimedBytes: number | undefined;
  /** A maintainer, or whoever holds a token that may push. */
  readonly isOwners: boolean;
  readonly quota: { readonly leftBytes: number; readonly reason: string };
  /** What strangers may bring with this request; undefined: nothing more now. */
  readonly strangersBytes: number | undefined;
}

export type UploadDecision =
  | { readonly type: "here" }
  /** It is here and becomes the repository's by this request. */
  | { readonly type: "claim" }
  | { readonly type: "upload"; readonly as: "owners" | "strangers" }
  /** Whoever proves to be a maintainer may. */
  | { readonly type: "who-are-you"; readonly message: string }
  | { readonly type: "refused"; readonly status: number; readonly message: string };

export function decideUpload(facts: UploadFacts): UploadDecision {
  const { file, row, unclaimedBytes, isOwners, quota, strangersBytes } = facts;
  if (row?.isHere) return { type: "here" };
  // What a released pointer names is the repository's, whoever brings it: its hash is its proof.
  const isForOwners = isOwners || row?.isNamed === true;
  // What was said of a file that is here may be wrong; its bytes are known.
  const size = unclaimedBytes ?? file.size;
  if (isForOwners && size > quota.leftBytes) {
    return { type: "refused", status: 413, message: `the file has ${sizeText(size)}, and ${quota.reason}` };
  }
  if (unclaimedBytes !== undefined) return isForOwners ? { type: "claim" } : { type: "here" };
  if (isForOwners) return { type: "upload", as: "owners" };
  if (strangersBytes !== undefined && file.size <= strangersBytes) return { type: "upload", as: "strangers" };
  const most = strangersBytes === undefined ? "no more files" : `${sizeText(strangersBytes)} at a time`;
  return {
    type: "who-are-you",
    message: `${most} can be taken from somebody this server does not know: log in as a maintainer`,
  };
}

/** A released pointer names it, or a maintainer brought it. */
export const mayDownload = (row: LargeFileRow | undefined): row is LargeFileRow => row?.isHere === true;
