// The pointer that stands in a commit for a large file: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md. Pure.

import { isLargeFileId, type LargeFileId } from "../catalogue/large-files.js";

export interface Pointer {
  readonly oid: LargeFileId;
  readonly size: number;
}

/** A pointer is smaller than this; git-lfs reads no larger one. */
export const pointerBytes = 1_024;

/** Earlier names of the same format are still in histories. */
const versions = new Set([
  "https://git-lfs.github.com/spec/v1",
  "https://hawser.github.com/spec/v1",
  "http://git-media.io/v/2",
]);

const begin = Buffer.from("version ");

/** Undefined: these bytes are something else. */
export function pointerIn(blob: Buffer): Pointer | undefined {
  if (blob.length >= pointerBytes || !blob.subarray(0, begin.length).equals(begin)) return undefined;
  const values = new Map<string, string>();
  for (const line of blob.toString("utf8").trimEnd().split("\n")) {
    const space = line.indexOf(" ");
    if (space < 1 || values.has(line.slice(0, space))) return undefined;
    values.set(line.slice(0, space), line.slice(space + 1));
  }
  const [method, oid] = (values.get("oid") ?? "").split(":");
  const size = Number(values.get("size"));
  if (!versions.has(values.get("version") ?? "") || method !== "sha256" || !isLargeFileId(oid)) return undefined;
  if (!/^\d{1,15}$/.test(values.get("size") ?? "") || !Number.isSafeInteger(size)) return undefined;
  return { oid, size };
}
