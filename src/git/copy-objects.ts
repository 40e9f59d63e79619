// Copies what some ids reach into a quarantine as one pack: pack-objects there, index-pack here. From one repository to
// another, and out of a quarantine that may hold more than its tips name.

import { pipeline } from "node:stream/promises";
import type { Oid } from "../nostr/ids.js";
import { type ObjectPlace, objectTypes } from "./objects.js";
import { QuarantineDirectory } from "./quarantine.js";
import { checkedOid, GitError } from "./run.js";

export async function copyObjects(
  from: ObjectPlace,
  into: QuarantineDirectory,
  oids: readonly Oid[],
  alreadyThere: readonly Oid[],
): Promise<void> {
  // pack-objects dies of an unknown id, so only what both have may be excluded.
  const shared = [...(await objectTypes(from, alreadyThere)).keys()];
  const lines = [...oids.map(checkedOid), "--not", ...shared.map(checkedOid)];
  const packing = await from.git.start(["pack-objects", "--revs", "--stdout", "--delta-base-offset", "--quiet"], {
    directory: from.directory,
    env: from.env ?? {},
    stdin: true,
  });
  const indexing = await into.git.start(["index-pack", "--stdin", "--fix-thin"], {
    directory: into.repositoryDirectory,
    env: into.writingEnvironment,
    stdin: true,
  });
  packing.stdin?.end(`${lines.join("\n")}\n`);
  indexing.stdout.resume();
  if (indexing.stdin) await pipeline(packing.stdout, indexing.stdin).catch(() => undefined);
  const [packed, indexed] = await Promise.all([packing.exit, indexing.exit]);
  if (packed.code !== 0) throw new GitError("pack-objects", packed);
  if (indexed.code !== 0) throw new GitError("index-pack", indexed);
}

/** Another quarantine, with what these reach and the refs do not: bytes that no tip names stay behind. `here`: what the refs name. */
export async function reachedBy(
  quarantine: QuarantineDirectory,
  tips: readonly Oid[],
  here: readonly Oid[],
): Promise<QuarantineDirectory> {
  const { git, repositoryDirectory, clock } = quarantine;
  const reached = await QuarantineDirectory.make(git, repositoryDirectory, clock);
  try {
    await copyObjects(quarantine.place, reached, tips, here);
    return reached;
  } catch (error) {
    await reached.drop();
    throw error;
  }
}
