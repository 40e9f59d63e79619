// Copies of shared packs in a repository's directory on this machine: whether one is there, whether its bytes are still those
// that were put, and how it leaves.

import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ifPresent, makeDirectory, removeAll, syncPath, tryLink } from "../base/durable-files.js";
import type { StoredPack } from "../catalogue/packs.js";
import { sha256Of } from "./pack-transfer.js";
import { packParts, retiredFolder } from "./repository-files.js";

/** By the sizes of its files. */
export async function hasPack(folder: string, { name, parts }: StoredPack): Promise<boolean> {
  for (const { suffix, bytes } of parts) {
    if ((await ifPresent(stat(join(folder, name + suffix))))?.size !== bytes) return false;
  }
  return true;
}

/** Byte for byte. */
export async function isPackWhole(folder: string, { name, parts }: StoredPack): Promise<boolean> {
  for (const { suffix, sha256 } of parts) {
    if ((await ifPresent(sha256Of(join(folder, name + suffix)))) !== sha256) return false;
  }
  return true;
}

export async function linkPack(from: string, to: string, name: string): Promise<void> {
  for (const suffix of packParts) await tryLink(join(from, name + suffix), join(to, name + suffix));
}

/** Longer than any fetch takes. */
const retiredMs = 86_400_000;

/** At the first look of this process: no fetch of an earlier one runs. */
export const dropRetired = (directory: string): Promise<void> => removeAll(join(directory, retiredFolder));

/** These are listed no more: only fetches that run still look where they go. */
export async function retirePacks(directory: string, names: readonly string[], nowMs: number): Promise<void> {
  const retired = join(directory, retiredFolder, "pack");
  await makeDirectory(retired);
  for (const name of await readdir(retired)) {
    // The link was made when it retired.
    const since = (await ifPresent(stat(join(retired, name))))?.ctimeMs ?? 0;
    if (since < nowMs - retiredMs) await rm(join(retired, name), { force: true });
  }
  for (const name of names) await linkPack(join(directory, "objects/pack"), retired, name);
  for (const name of names) await removePack(directory, name);
}

/** Its copy here is of no use. */
export async function removePack(directory: string, name: string): Promise<void> {
  const folder = join(directory, "objects/pack");
  await removeIndexes(directory);
  for (const suffix of [...packParts].reverse()) await rm(join(folder, name + suffix), { force: true });
  await syncPath(folder);
}

/** What git made over all packs names those that go. Housekeeping makes it anew. */
async function removeIndexes(directory: string): Promise<void> {
  for (const [folder, prefix] of [
    ["objects/pack", "multi-pack-index"],
    ["objects/info", "commit-graph"],
  ] as const) {
    for (const name of (await ifPresent(readdir(join(directory, folder)))) ?? []) {
      if (name.startsWith(prefix)) await rm(join(directory, folder, name), { recursive: true, force: true });
    }
  }
}
